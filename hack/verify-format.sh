#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that all Go code that is not generated is formatted.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

unformatted=$(git ls-files -z -- '*.go' | xargs -0 gofmt -l)
if [[ -n ${unformatted} ]]; then
  printf 'not formatted (gofmt -w):\n%s\n' "${unformatted}" >&2
  exit 1
fi
