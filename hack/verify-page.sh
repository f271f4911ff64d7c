#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the committed files of the page are those that its sources give, and that they are small.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly page=cmd/kubectl-slipstream/app/internal/dashboard/web
# The maximum size of script and style together, compressed, in bytes.
readonly limit=$((90 * 1024))

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

hack/update-page.sh "${scratch}"
if ! diff --recursive --brief "${page}/dist" "${scratch}" >&2; then
  echo "the page was not built from its sources: run hack/update-page.sh and commit ${page}/dist" >&2
  exit 1
fi
size=$(($(gzip -9 -c "${scratch}/app.js" | wc -c) + $(gzip -9 -c "${scratch}/app.css" | wc -c)))
if ((size > limit)); then
  echo "script and style of the page have ${size} bytes compressed, more than ${limit}" >&2
  exit 1
fi
echo "script and style of the page have ${size} bytes compressed"
