#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the sites of the documentation of all releases, each from its own tag, and of this work tree as latest, into FOLDER.
#
#   hack/site-versions.sh FOLDER

set -o errexit -o nounset -o pipefail

mkdir -p "$1"
folder=$(cd "$1" && pwd)
readonly folder

cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

while IFS= read -r tag; do
  # The first releases may not have the site.
  if git cat-file -e "${tag}:hack/site.sh" 2> /dev/null; then
    mkdir "${scratch}/${tag}"
    git archive "${tag}" | tar -x -C "${scratch}/${tag}"
    "${scratch}/${tag}/hack/site.sh" "${tag}" "${folder}"
  fi
done < <(git tag --list 'v*')
hack/site.sh latest "${folder}"
