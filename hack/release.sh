#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds what is published of a version into a folder: the images as archives, the archives of the kubectl plugin and its manifest for
# krew, the chart, the manifest for installations without Helm, the bills of materials, the release notes, the checksums and the SLSA provenance. Two clones
# of the tag give the same files. hack/publish-release.sh signs and pushes them.
#
#   hack/release.sh VERSION FOLDER

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly version=$1
readonly folder=$2

fail() {
  echo "error: $*" >&2
  exit 1
}

[[ ${version} =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "VERSION is not like v1.2.3: ${version@Q}"
git tag --points-at HEAD | grep --fixed-strings --line-regexp --quiet -- "${version}" || fail "the commit does not have the tag ${version}"
hack/verify-clean-tree.sh
for line in "version: ${version#v}" "appVersion: ${version}"; do
  grep --fixed-strings --line-regexp --quiet "${line}" charts/slipstream/Chart.yaml || fail "charts/slipstream/Chart.yaml does not have ${line}"
done
section=$(grep --extended-regexp "^## ${version//./\\.}(,|\$)" CHANGELOG.md) || fail "CHANGELOG.md has no section ${version}"
[[ ${section} != *"not released yet"* ]] || fail "CHANGELOG.md says that ${version} is not released yet"
if [[ -n $(ls -A "${folder}" 2> /dev/null) ]]; then
  fail "${folder} is not empty"
fi

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

make plugin-release PLUGIN_OUTPUT="${folder}"
make image IMAGE_OUTPUT="${scratch}" IMAGE_PUSH=
go run ./hack/release -version "${version}" -images "${scratch}" -output "${folder}" -helm "$(go run ./hack/dev tool helm)" \
  ${RELEASE_BUILDER:+-builder "${RELEASE_BUILDER}"}
