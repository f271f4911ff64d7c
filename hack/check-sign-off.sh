#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that every commit between two revisions has the sign-off of its author, which states the Developer Certificate of
# Origin (DCO). Merges need none, and Dependabot signs off with another address than that of its commits.
#
#   hack/check-sign-off.sh BASE [HEAD]

set -o errexit -o nounset -o pipefail

if (($# < 1 || $# > 2)); then
  echo "usage: hack/check-sign-off.sh BASE [HEAD], such as hack/check-sign-off.sh origin/main" >&2
  exit 2
fi
base=$1
head=${2:-HEAD}

commits=$(git rev-list --no-merges "${base}..${head}")
missing=0
for commit in ${commits}; do
  author=$(git show --no-patch --format='%ae' "${commit}")
  if [[ ${author} == "49699333+dependabot[bot]@users.noreply.github.com" ]]; then
    continue
  fi
  signers=$(git show --no-patch --format='%(trailers:key=Signed-off-by,valueonly)' "${commit}")
  if ! grep --fixed-strings --ignore-case --quiet "<${author}>" <<< "${signers}"; then
    git show --no-patch --format="no Signed-off-by of ${author}: %h %s" "${commit}" >&2
    missing=$((missing + 1))
  fi
done

if ((missing > 0)); then
  echo "sign off all commits with: git rebase --signoff ${base}" >&2
  exit 1
fi
