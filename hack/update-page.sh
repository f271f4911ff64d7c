#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the page of `kubectl slipstream dashboard` into its folder dist, which is committed, so that building the plugin needs no Node.
#
#   hack/update-page.sh [FOLDER]   FOLDER is where the files are written, the page's dist unless given

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly page=cmd/kubectl-slipstream/app/internal/dashboard/web
readonly output=${1:-${page}/dist}

command -v npm > /dev/null || {
  echo "npm is needed to build the page: install Node.js 20 or later" >&2
  exit 1
}

npm ci --prefix "${page}" --ignore-scripts --loglevel=error
"${page}/node_modules/.bin/tsc" --project "${page}"
mkdir -p "${output}"
go tool esbuild "${page}/src/main.tsx" --bundle --minify --target=es2022 --format=esm --charset=utf8 --legal-comments=none \
  --tsconfig="${page}/tsconfig.json" --log-level=warning --outfile="${output}/app.js"
go tool esbuild "${page}/src/style.css" --bundle --minify --target=es2022 --charset=utf8 --log-level=warning --outfile="${output}/app.css"
cp "${page}/src/index.html" "${page}/src/favicon.svg" "${output}/"
