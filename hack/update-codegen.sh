#!/usr/bin/env bash
# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Regenerates everything that is derived from pkg/apis: deep copies, conversions and defaults beside the types, and
# clients, listers, informers, apply configurations and OpenAPI definitions in pkg/generated. The generators are those
# of the code-generator version in go.mod. Needs no network once modules are cached; run again, it changes nothing.

set -o errexit -o nounset -o pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
cd "${root}"

module="github.com/configbutler/slipstream"
boilerplate="${root}/hack/boilerplate.go.txt"
generated="${root}/pkg/generated"

scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT

# kube_codegen.sh installs the generators into GOBIN.
export GOBIN="${scratch}/bin"
mkdir -p "${GOBIN}" "${generated}"/{applyconfiguration,clientset,informers,listers,openapi}

# No package imports the module, so builds do not download it.
go mod download k8s.io/code-generator
# shellcheck source=/dev/null
source "$(go list -m -f '{{.Dir}}' k8s.io/code-generator)/kube_codegen.sh"

kube::codegen::gen_helpers --boilerplate "${boilerplate}" pkg/apis

# Apply configurations carry the schema of the types, so that a field manager's part of an object can be extracted. The
# schema is printed from the OpenAPI definitions, which are therefore generated first. It finds types by the name derived
# from their import path, so +k8s:openapi-model-package must have that name.
kube::codegen::gen_openapi \
  --boilerplate "${boilerplate}" \
  --output-dir "${generated}/openapi" \
  --output-pkg "${module}/pkg/generated/openapi" \
  --output-model-name-file zz_generated.model_name.go \
  --report-filename "${scratch}/violations" --update-report \
  pkg/apis

# The generator reports violations of the rules for API types, such as a list without a list type. One is intended: the
# field is called repoUrl, not repoURL.
if grep -F "${module}" "${scratch}/violations" | grep -v ',GitRepoConfigSpec,RepoURL$'; then
  echo "the types above violate the rules for API types" >&2
  exit 1
fi

go run ./hack/openapischema > "${scratch}/schema.json"

kube::codegen::gen_client \
  --boilerplate "${boilerplate}" \
  --output-dir "${generated}" \
  --output-pkg "${module}/pkg/generated" \
  --with-watch --with-applyconfig \
  --applyconfig-openapi-schema "${scratch}/schema.json" \
  pkg/apis
