#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs the linters that .golangci.yml names, with the version that hack/tools pins.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

go tool -modfile=hack/tools/go.mod golangci-lint run "$@"
