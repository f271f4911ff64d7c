#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Runs every hack/verify-*.sh, and the check for a clean tree last: the others may
# regenerate files. All are run, so that one run reports all problems.

set -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# As the tests without the race detector are compiled, so that checks and tests share the compiled packages.
export CGO_ENABLED=0 GOFLAGS="-trimpath ${GOFLAGS:-}"

failed=()
verify() {
  local begin=${SECONDS}
  echo "==> $1"
  if "$1"; then
    echo "    passed after $((SECONDS - begin))s"
  else
    echo "    FAILED after $((SECONDS - begin))s" >&2
    failed+=("$1")
  fi
}

for script in hack/verify-*.sh; do
  [[ ${script} == hack/verify-clean-tree.sh ]] || verify "${script}"
done
verify hack/verify-clean-tree.sh

if (( ${#failed[@]} > 0 )); then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
