#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks whether the programs call known vulnerabilities of their modules. It needs the database at https://vuln.go.dev, or
# a mirror of it in GOVULNDB, and is therefore not part of `make verify`. Exit codes: 0 none was found; 1 some were found,
# or the check failed; 2 the database could not be reached, so that the result is unknown.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

database=${GOVULNDB:-https://vuln.go.dev}
output=$(mktemp)
trap 'rm -f "${output}"' EXIT

status=0
go tool -modfile=hack/tools/go.mod govulncheck "-db=${database}" "${@:-./cmd/...}" > "${output}" 2>&1 || status=$?
cat "${output}"
if (( status != 0 )) && grep -q '^govulncheck: fetching vulnerabilities' "${output}"; then
  echo "NOT CHECKED: the database ${database} cannot be reached; GOVULNDB can name another" >&2
  exit 2
fi
if (( status != 0 )); then
  exit 1
fi
