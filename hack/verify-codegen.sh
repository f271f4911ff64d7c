#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that regenerating the generated code changes nothing.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

# fingerprint prints a hash of pkg, committed or not: the tree that a commit of it would have.
fingerprint() {
  rm -f "${scratch}/index"
  GIT_INDEX_FILE="${scratch}/index" git add --all -- pkg
  GIT_INDEX_FILE="${scratch}/index" git write-tree
}

before=$(fingerprint)
hack/update-codegen.sh
if [[ $(fingerprint) != "${before}" ]]; then
  git status --short -- pkg >&2
  echo "generated code was out of date; it has been regenerated: commit it" >&2
  exit 1
fi
