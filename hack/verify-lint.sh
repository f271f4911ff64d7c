#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the linters that .golangci.yml names, with the version that hack/tools pins. gosec must be among them: no other
# linter checks for unsafe calls.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

lint=(go tool -modfile=hack/tools/go.mod golangci-lint)
enabled=$("${lint[@]}" linters | sed '/^Disabled/,$d')
if ! grep '^gosec:' <<< "${enabled}"; then
  echo ".golangci.yml does not enable gosec" >&2
  exit 1
fi
"${lint[@]}" run "$@"
