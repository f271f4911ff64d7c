#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks the workflows of GitHub Actions with actionlint, with the version that hack/actionlint pins. It uses no other linters, so that
# the result does not depend on what is installed.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

go tool -modfile=hack/actionlint/go.mod actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml
