#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs go vet, also on what only the tag failpoints builds. make test does not.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

go vet ./...
go vet -tags failpoints ./cmd/... ./pkg/...
