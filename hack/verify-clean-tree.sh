#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the verified files are the committed ones.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Some settings hide files.
changes=$(git status --porcelain --untracked-files=all)
if [[ -n ${changes} ]]; then
  printf 'not committed:\n%s\n' "${changes}" >&2
  exit 1
fi
