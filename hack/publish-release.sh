#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Signs and pushes what hack/release.sh has built, without building it again: the images to REPOSITORY:VERSION and
# REPOSITORY-dashboard:VERSION, with their bills of materials, and last the chart, to charts/slipstream beside REPOSITORY. It prints their
# digests, and everything else as errors. Nothing is pushed without REPOSITORY.
#
# KEY is what cosign accepts: a file, the URI of a key in a KMS, or env://NAME. Nothing is signed without it. cosign reads the password of
# a file from COSIGN_PASSWORD. With RELEASE_TLOG=1, signatures are recorded in the public log of Sigstore.
#
#   hack/publish-release.sh VERSION FOLDER [REPOSITORY [KEY]]

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly version=$1
readonly folder=$2
readonly repository=${3:-}
readonly key=${4:-}

fail() {
  echo "error: $*" >&2
  exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

chart=${folder}/slipstream-${version#v}.tgz
[[ ${version} =~ ^v[0-9A-Za-z.-]+$ && -f ${chart} ]] || fail "${folder} does not have the release ${version@Q}"
(cd "${folder}" && sha256sum --check --quiet --strict SHA256SUMS)

if [[ -n ${key} ]]; then
  cosign=$(go run ./hack/dev tool cosign)
  # Without a log, cosign neither asks Sigstore for addresses nor for certificates.
  log=(--signing-config hack/cosign/signing-config.json --trusted-root hack/cosign/trusted-root.json)
  if [[ ${RELEASE_TLOG:-} == 1 ]]; then
    log=()
  fi
fi

# with_key runs a command of cosign with the key.
with_key() {
  local command=$1
  shift
  "${cosign}" "${command}" --yes --key "${key}" "${log[@]}" "$@" >&2
}

# sign_files signs each file, the list of checksums and the provenance, and writes the public key.
sign_files() {
  local file
  while read -r _ file <&3; do
    with_key sign-blob --bundle "${folder}/${file}.sigstore.json" "${folder}/${file}"
  done 3< "${folder}/SHA256SUMS"
  with_key sign-blob --bundle "${folder}/SHA256SUMS.sigstore.json" "${folder}/SHA256SUMS"
  with_key attest-blob --bundle "${folder}/provenance.sigstore.json" --statement "${folder}/provenance.intoto.json"
  "${cosign}" public-key --key "${key}" > "${folder}/cosign.pub"
}

if [[ -n ${key} ]]; then
  sign_files
else
  echo "${folder} is not signed: RELEASE_KEY is empty" >&2
fi
if [[ -z ${repository} ]]; then
  echo "nothing is pushed: RELEASE_PUSH is empty" >&2
  exit
fi

# digests prints the digests in an OCI layout: that of the index of images, and those of the bills of materials.
digests() {
  grep --only-matching --extended-regexp 'sha256:[0-9a-f]{64}' "$1/index.json"
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

chart_digest=${BASH_REMATCH[1]}

# attest attaches the provenance to an artifact in the registry.
attest() {
  with_key attest --type slsaprovenance1 --predicate "${scratch}/predicate.json" "$1"
}

# sign_images signs the images of a repository, each and as a whole, and their bills of materials, and attaches the provenance to the
# whole.
sign_images() {
  local digest
  for digest in $(digests "$2"); do
    with_key sign --recursive "$1@${digest}"
  done
  attest "$1@$(digests "$2" | head --lines=1)"
}

if [[ -n ${key} ]]; then
  go run ./hack/release -predicate-of "${folder}/provenance.intoto.json" > "${scratch}/predicate.json"
  sign_images "${repository}" "${layout}"
  sign_images "${repository}-dashboard" "${page}"
  with_key sign "${repository%/*}/charts/slipstream@${chart_digest}"
  attest "${repository%/*}/charts/slipstream@${chart_digest}"
fi

# A workflow reads these.
echo "image=$(digests "${layout}" | head --lines=1)"
echo "dashboard=$(digests "${page}" | head --lines=1)"
echo "chart=${chart_digest}"
