#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that every source file names its licence in its first lines.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
while IFS= read -r -d '' file; do
  if ! head -n 5 "${file}" | grep -q 'SPDX-License-Identifier: Apache-2.0'; then
    echo "no licence header: ${file}" >&2
    status=1
  fi
done < <(git ls-files -z -- '*.go' '*.sh' '*.ts' '*.tsx' '*.mjs' '*/src/*.css' .ci/run)
exit "${status}"
