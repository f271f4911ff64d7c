#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Generates the schema of the chart's values, which has all flags of the server, and the table of values in its README, and renders the
# chart:
# artifacts/install.yaml with its default values, for users without helm, and test/devcluster/install.yaml with the
# permissions of development clusters.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

go run ./hack/chartschema charts/slipstream > "${scratch}/schema"
cp "${scratch}/schema" charts/slipstream/values.schema.json
go run ./hack/chartschema -readme charts/slipstream > "${scratch}/readme"
cp "${scratch}/readme" charts/slipstream/README.md

helm=$(go run ./hack/dev tool helm)

# render writes the manifest of the chart with some values to a file.
render() {
  local file=$1
  shift
  hack/render-manifest.sh "${helm}" charts/slipstream "$@" > "${scratch}/manifest"
  cp "${scratch}/manifest" "${file}"
}

render artifacts/install.yaml
if [[ -f test/devcluster/values.yaml ]]; then
  render test/devcluster/install.yaml --values test/devcluster/values.yaml
fi
