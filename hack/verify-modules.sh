#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that every go.mod and go.sum names exactly what its module needs.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

for module in . hack/actionlint hack/controlplane hack/controlplane-oldest hack/cosign hack/crane hack/gitea hack/gitopsreverser hack/helm hack/helm3 hack/hugo hack/image hack/kustomizecontroller hack/kwok hack/oauth2proxy hack/sops hack/sourcecontroller hack/tools test/alerts test/bench/gogit test/partners/argocd; do
  (cd "${module}" && go mod tidy -diff)
done
