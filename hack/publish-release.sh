#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Signs and pushes what hack/release.sh has built, without building it again: the images to REPOSITORY:VERSION and
# REPOSITORY-dashboard:VERSION, with their bills of materials, and last the chart, to charts/slipstream beside REPOSITORY. It prints their
# digests, and everything else as errors. Nothing is pushed without REPOSITORY.
#
# KEY is what cosign accepts: a file, the URI of a key in a KMS, or env://NAME. Nothing is signed without it, and nothing is pushed then unless
# RELEASE_UNSIGNED=1. cosign reads the password of a file from COSIGN_PASSWORD. With RELEASE_TLOG=1, signatures are recorded in the public log
# of Sigstore. RELEASE_TOOLS is a folder in which hack/build-release-tools.sh has built the programs; without it, they are built first.
#
#   hack/publish-release.sh VERSION FOLDER [REPOSITORY [KEY]]

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly version=$1
readonly folder=$2
readonly repository=${3:-}
readonly key=${4:-}
readonly charts=${repository%/*}/charts
readonly chart=${folder}/slipstream-${version#v}.tgz

# Only cosign gets the password, and the key of env://NAME: not what is compiled and run to push.
hidden=(COSIGN_PASSWORD)
if [[ ${key} =~ ^env://([A-Za-z_][A-Za-z0-9_]*)$ ]]; then
  hidden+=("${BASH_REMATCH[1]}")
fi
secrets=()
for name in "${hidden[@]}"; do
  if [[ -v ${name} ]]; then
    secrets+=("${name}=${!name}")
    unset "${name}"
  fi
done

fail() {
  echo "error: $*" >&2
  exit 1
}

source hack/release-environment.sh
[[ ${version} =~ ^v[0-9A-Za-z.-]+$ ]] || fail "VERSION is not like v1.2.3: ${version@Q}"
if [[ -n ${repository} && -z ${key} && ${RELEASE_UNSIGNED:-} != 1 ]]; then
  fail "nothing is pushed without signatures: set RELEASE_KEY, or RELEASE_UNSIGNED=1 to push an unsigned release"
fi
[[ -n ${key} ]] || echo "${folder} is not signed: RELEASE_KEY is empty" >&2
[[ -n ${repository} ]] || echo "nothing is pushed: RELEASE_PUSH is empty" >&2
[[ -n ${key}${repository} ]] || exit 0

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT
tools=${RELEASE_TOOLS:-}
if [[ -z ${tools} ]]; then
  tools=${scratch}/tools
  hack/build-release-tools.sh "${tools}" >&2
fi
digests=$("${tools}/release" -check -version "${version}" -output "${folder}")

# Without a log, cosign neither asks Sigstore for addresses nor for certificates.
log=(--signing-config hack/cosign/signing-config.json --trusted-root hack/cosign/trusted-root.json)
if [[ ${RELEASE_TLOG:-} == 1 ]]; then
  log=()
fi

# with_secrets runs a program with what is hidden from the others.
with_secrets() (
  if (( ${#secrets[@]} > 0 )); then
    export "${secrets[@]}"
  fi
  exec "$@"
)

# with_key runs a command of cosign with the key.
with_key() {
  local command=$1
  shift
  with_secrets "${tools}/cosign" "${command}" --yes --key "${key}" "${log[@]}" "$@" >&2
}

# sign_files signs each file, the list of checksums and the provenance, and writes the public key.
sign_files() {
  local file
  while read -r _ file <&3; do
    with_key sign-blob --bundle "${folder}/${file}.sigstore.json" "${folder}/${file}"
  done 3< "${folder}/SHA256SUMS"
  with_key sign-blob --bundle "${folder}/SHA256SUMS.sigstore.json" "${folder}/SHA256SUMS"
  with_key attest-blob --bundle "${folder}/provenance.sigstore.json" --statement "${folder}/provenance.intoto.json"
  with_secrets "${tools}/cosign" public-key --key "${key}" > "${folder}/cosign.pub"
}

if [[ -n ${key} ]]; then
  sign_files
fi
if [[ -z ${repository} ]]; then
  exit
fi

# digest prints the digest of an image.
digest() {
  sed --quiet "s/^$1=//p" <<< "${digests}"
}

# refuse_other fails if a tag is in the registry, and its manifest does not have a text. A registry may deny to read what it does not have.
refuse_other() {
  local there
  if there=$("${tools}/crane" "$1" "$2" 2>&1); then
    [[ ${there} == *"$3"* ]] || fail "$2 is already in the registry, and is another"
  elif ! grep --extended-regexp --quiet 'MANIFEST_UNKNOWN|NAME_UNKNOWN|404 Not Found|DENIED' <<< "${there}"; then
    fail "${there}"
  fi
}

# sign signs an artifact in the registry as a name of this version, and what it consists of.
sign() {
  with_key sign --recursive -a "name=$1" -a "version=${version}" "$2"
}

# attest attaches the provenance to an artifact in the registry.
attest() {
  with_key attest --type slsaprovenance1 --predicate "${scratch}/predicate.json" "$1"
}

# sign_image signs an image of a repository, as a whole and for each architecture, and the bills of materials, and attaches the provenance
# to the whole.
sign_image() {
  local each
  for each in $(grep --only-matching --extended-regexp 'sha256:[0-9a-f]{64}' "$3/index.json"); do
    sign "$1" "$2@${each}"
  done
  attest "$2@$(digest "$1")"
}

# push_images pushes the images with a flag of hack/image.
push_images() {
  "${tools}/image" -built "${scratch}" -push "${repository}:${version}" "$@" >&2
}

# push_chart pushes the chart, and prints its digest. helm writes the time of the file into the artifact.
push_chart() {
  local plain=() pushed
  if [[ ${repository} =~ ^(localhost|127\.0\.0\.1): ]]; then
    plain=(--plain-http)
  fi
  pushed=$(TZ=UTC "${tools}/helm" push "${plain[@]}" "${scratch}/${chart##*/}" "oci://${charts}" 2>&1) || fail "${pushed}"
  echo "${pushed}" >&2
  [[ ${pushed} =~ Digest:\ (sha256:[0-9a-f]{64}) ]] || fail "helm has printed no digest"
  echo "${BASH_REMATCH[1]}"
}

# Everything that can fail without a registry, and then what the registry has.
layout=${scratch}/layout
page=${scratch}/dashboard/layout
mkdir -p "${layout}" "${page}"
tar --extract --file "${folder}/slipstream.oci.tar" --directory "${layout}"
tar --extract --file "${folder}/slipstream-dashboard.oci.tar" --directory "${page}"
cp "${chart}" "${scratch}/"
at=$(git show --no-patch --format=%ct "refs/tags/${version}^{commit}")
touch --date="@${at}" "${scratch}/${chart##*/}"
"${tools}/release" -predicate-of "${folder}/provenance.intoto.json" > "${scratch}/predicate.json"
refuse_other digest "${repository}:${version}" "$(digest slipstream)"
refuse_other digest "${repository}-dashboard:${version}" "$(digest slipstream-dashboard)"
refuse_other manifest "${charts}/slipstream:${version#v}" "$(sha256sum "${chart}" | cut --delimiter=' ' --fields=1)"

# The images have their signatures before they have a tag. helm gives the chart its tag at once.
push_images -untagged
if [[ -n ${key} ]]; then
  sign_image slipstream "${repository}" "${layout}"
  sign_image slipstream-dashboard "${repository}-dashboard" "${page}"
fi
push_images
chart_digest=$(push_chart)
if [[ -n ${key} ]]; then
  sign charts/slipstream "${charts}/slipstream@${chart_digest}"
  attest "${charts}/slipstream@${chart_digest}"
fi

# A workflow reads these.
echo "image=$(digest slipstream)"
echo "dashboard=$(digest slipstream-dashboard)"
echo "chart=${chart_digest}"
