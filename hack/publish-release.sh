#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Pushes what hack/release.sh has built, without building it again: the images to REPOSITORY:VERSION and REPOSITORY-dashboard:VERSION, with
# their bills of materials, and last the chart, to charts/slipstream beside REPOSITORY. Nothing is pushed without REPOSITORY.
#
# It prints their digests, and everything else as errors.
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
[[ ${version} =~ ^v[0-9A-Za-z.-]+$ && -f ${chart} ]] || fail "${folder} does not have the release ${version@Q}"
(cd "${folder}" && sha256sum --check --quiet --strict SHA256SUMS)

if [[ -z ${repository} ]]; then
  echo "nothing is pushed: RELEASE_PUSH is empty" >&2
  exit
fi

# digest prints the digest of the index of images in an OCI layout, which is the first in the list.
digest() {
  grep --only-matching --extended-regexp 'sha256:[0-9a-f]{64}' "$1/index.json" | head --lines=1
}

layout=${scratch}/layout
page=${scratch}/dashboard/layout
mkdir -p "${layout}" "${page}"
tar --extract --file "${folder}/slipstream.oci.tar" --directory "${layout}"
tar --extract --file "${folder}/slipstream-dashboard.oci.tar" --directory "${page}"
go run -C hack/image . -built "${scratch}" -push "${repository}:${version}" >&2

# helm writes the time of the file into the artifact.
cp "${chart}" "${scratch}/"
chart=${scratch}/${chart##*/}
touch --date="@$(git show --no-patch --format=%ct "${version}^{commit}")" "${chart}"
plain=()
if [[ ${repository} =~ ^(localhost|127\.0\.0\.1): ]]; then
  plain=(--plain-http)
fi
pushed=$(TZ=UTC "$(go run ./hack/dev tool helm)" push "${plain[@]}" "${chart}" "oci://${repository%/*}/charts" 2>&1)
echo "${pushed}" >&2
[[ ${pushed} =~ Digest:\ (sha256:[0-9a-f]{64}) ]] || fail "helm has printed no digest"

# A workflow reads these.
echo "image=$(digest "${layout}")"
echo "dashboard=$(digest "${page}")"
echo "chart=${BASH_REMATCH[1]}"
