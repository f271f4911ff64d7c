#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints a manifest for kubectl apply: a namespace, and the objects that helm would install into it.
#
#   hack/render-manifest.sh HELM CHART [FLAG...]

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly helm=$1
readonly chart=$2
shift 2

cat << 'NAMESPACE'
# Rendered from charts/slipstream by hack/render-manifest.sh.
apiVersion: v1
kind: Namespace
metadata:
  name: slipstream-system
  labels:
    pod-security.kubernetes.io/enforce: restricted

NAMESPACE
"${helm}" template slipstream "${chart}" --namespace slipstream-system --skip-tests "$@"
