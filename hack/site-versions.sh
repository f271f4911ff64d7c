#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the sites of the documentation of releases, each from its own tag, and of this work tree as latest, into FOLDER. The variable
# SITE_RELEASES has the tags of the releases; if it is not set, all tags are used. Tags that are not like v1.2.3 are left out. A release
# whose site can no longer be built fails the script, because its pages would disappear from what is published.
#
#   hack/site-versions.sh FOLDER

set -o errexit -o nounset -o pipefail

mkdir -p "$1"
folder=$(cd "$1" && pwd)
readonly folder

cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

tags=${SITE_RELEASES-$(git tag --list)}
while read -r tag; do
  # hack/site.sh accepts no other versions.
  [[ ${tag} =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || continue
  git rev-parse --quiet --verify "refs/tags/${tag}^{commit}" > /dev/null || { echo "error: there is no tag ${tag}" >&2; exit 1; }
  # The first releases may not have the site.
  if git cat-file -e "refs/tags/${tag}:hack/site.sh" 2> /dev/null; then
    mkdir "${scratch}/${tag}"
    git archive "refs/tags/${tag}" < /dev/null | tar -x -C "${scratch}/${tag}"
    "${scratch}/${tag}/hack/site.sh" "${tag}" "${folder}" < /dev/null
  fi
done <<< "${tags//[[:space:]]/$'\n'}"
hack/site.sh latest "${folder}"
