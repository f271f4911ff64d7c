#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds what is published of a version into a folder: the images as archives, the archives of the kubectl plugin and its manifest for
# krew, the chart, the manifest for installations without Helm, the bills of materials, the release notes, the checksums and the SLSA provenance.
# It builds in a new clone of the tag, so that nothing else that is in this one gets into a release. Two clones of the tag give the same
# files. hack/publish-release.sh signs and pushes them.
#
#   hack/release.sh VERSION FOLDER
#
# IMAGE_ARCHES and PLUGIN_PLATFORMS build less than a whole release. With RELEASE_MERGED=1, the commit must be on main or a branch release-*
# of origin.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly version=$1
readonly folder=$2
readonly pattern='^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$'

fail() {
  echo "error: $*" >&2
  exit 1
}

# check refuses a commit that is not that of the version.
check() {
  local tags highest line section
  [[ ${version} =~ ${pattern} ]] || fail "VERSION is not like v1.2.3: ${version@Q}"
  tags=$(git -c versionsort.suffix=- tag --points-at HEAD --sort=-version:refname)
  grep --fixed-strings --line-regexp --quiet -- "${version}" <<< "${tags}" || fail "the commit does not have the tag ${version}"
  highest=$(grep --extended-regexp --max-count=1 "${pattern}" <<< "${tags}")
  [[ ${highest} == "${version}" ]] || fail "the commit also has the tag ${highest}, which is higher: Go would give the programs that version, not ${version}"
  hack/verify-clean-tree.sh
  for line in "version: ${version#v}" "appVersion: ${version}"; do
    grep --fixed-strings --line-regexp --quiet "${line}" charts/slipstream/Chart.yaml || fail "charts/slipstream/Chart.yaml does not have ${line}"
  done
  section=$(grep --extended-regexp "^## ${version//./\\.}(,|\$)" CHANGELOG.md) || fail "CHANGELOG.md has no section ${version}"
  [[ ${section} != *"not released yet"* ]] || fail "CHANGELOG.md says that ${version} is not released yet"
  if [[ ${RELEASE_MERGED:-} == 1 && -z $(git for-each-ref --contains HEAD refs/remotes/origin/main 'refs/remotes/origin/release-*') ]]; then
    fail "the commit is neither on main nor on a branch release-* of origin"
  fi
  if [[ -n $(ls -A "${folder}" 2> /dev/null) ]]; then
    fail "${folder} is not empty"
  fi
}

check
source hack/release-environment.sh

partial=()
for name in IMAGE_ARCHES PLUGIN_PLATFORMS; do
  if [[ -n ${!name:-} ]]; then
    partial+=("${name}=${!name}")
    echo "warning: the release is partial: ${name}=${!name}" >&2
  fi
done

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
output=$(realpath --canonicalize-missing -- "${folder}")
git clone --quiet --no-local --no-checkout --template= . "${scratch}/source"
cd "${scratch}/source"
git checkout --quiet --detach "refs/tags/${version}"

go mod verify
go mod verify -C hack/image
go run ./hack/pluginrelease -version "${version}" -output "${output}" ${PLUGIN_PLATFORMS:+-platforms "${PLUGIN_PLATFORMS}"}
go run -C hack/image . -source "${PWD}" -version "${version}" -output "${scratch}/images" ${IMAGE_ARCHES:+-arches "${IMAGE_ARCHES}"}
go run ./hack/release -version "${version}" -images "${scratch}/images" -output "${output}" -helm "$(go run ./hack/dev tool helm)" \
  -partial "${partial[*]}" ${RELEASE_BUILDER:+-builder "${RELEASE_BUILDER}"}
