#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the site of the documentation of this work tree into FOLDER/VERSION with Hugo, and lists all versions in the folder: versions.html
# names them, and index.html redirects to the newest release. VERSION is a tag, such as v1.2.3, or latest for the branch main.
#
#   hack/site.sh VERSION FOLDER

set -o errexit -o nounset -o pipefail

mkdir -p "$2"
readonly version=$1
folder=$(cd "$2" && pwd)
readonly folder

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly release='v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?'
[[ ${version} == latest || ${version} =~ ^${release}$ ]] || { echo "error: VERSION is neither latest nor like v1.2.3: ${version@Q}" >&2; exit 1; }
ref=${version}
[[ ${version} != latest ]] || ref=main

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

hugo=$(go run ./hack/dev tool hugo)
HUGO_PARAMS_VERSION=${version} HUGO_PARAMS_REF=${ref} HUGO_CACHEDIR=${scratch} "${hugo}" build --config hack/site/hugo.yaml \
  --destination "${folder}/${version}" --cleanDestinationDir --noBuildLock --panicOnWarning

# The newest release comes first, and latest last. A pre-release is older than its release.
mapfile -t releases < <(cd "${folder}" && printf '%s\n' * | grep --extended-regexp --line-regexp "${release}" | sed 's/-/~/' | sort --version-sort --reverse | sed 's/~/-/')
versions=("${releases[@]}")
[[ ! -f ${folder}/latest/index.html ]] || versions+=(latest)
newest=${versions[0]}
for each in "${releases[@]}"; do
  if [[ ${each} != *-* ]]; then
    newest=${each}
    break
  fi
done

page() {
  cat << EOF
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'">
<title>Slipstream: versions of the documentation</title>
<link rel="icon" href="${newest}/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${newest}/assets/style.css">
$1
</head>
<body class="plain">
<main>
<h1>Versions of the documentation</h1>
<ul>
$(for each in "${versions[@]}"; do echo "<li><a href=\"${each}/index.html\">${each}</a></li>"; done)
</ul>
</main>
</body>
</html>
EOF
}
page "" > "${folder}/versions.html"
page "<meta http-equiv=\"refresh\" content=\"0; url=${newest}/index.html\">" > "${folder}/index.html"
