#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Pushes what hack/release.sh has built, without building it again: the images to REPOSITORY:VERSION and REPOSITORY-dashboard:VERSION, with
# their bills of materials, and last the chart, to charts/slipstream beside REPOSITORY. Nothing is pushed without REPOSITORY.
#
#   hack/publish-release.sh VERSION FOLDER [REPOSITORY]

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly version=$1
readonly folder=$2
readonly repository=${3:-}

fail() {
  echo "error: $*" >&2
  exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

chart=${folder}/slipstream-${version#v}.tgz
[[ -f ${chart} ]] || fail "${folder} does not have the release ${version}"
(cd "${folder}" && sha256sum --check --quiet --strict SHA256SUMS)

if [[ -z ${repository} ]]; then
  echo "nothing is pushed: RELEASE_PUSH is empty" >&2
  exit
fi

mkdir -p "${scratch}/layout" "${scratch}/dashboard/layout"
tar --extract --file "${folder}/slipstream.oci.tar" --directory "${scratch}/layout"
tar --extract --file "${folder}/slipstream-dashboard.oci.tar" --directory "${scratch}/dashboard/layout"
go run -C hack/image . -built "${scratch}" -push "${repository}:${version}"

# helm writes the time of the file into the artifact.
SOURCE_DATE_EPOCH=$(git show --no-patch --format=%ct "${version}^{commit}")
cp "${chart}" "${scratch}/"
chart=${scratch}/${chart##*/}
touch --date="@${SOURCE_DATE_EPOCH}" "${chart}"
plain=()
if [[ ${repository} =~ ^(localhost|127\.0\.0\.1): ]]; then
  plain=(--plain-http)
fi
TZ=UTC "$(go run ./hack/dev tool helm)" push "${plain[@]}" "${chart}" "oci://${repository%/*}/charts"
