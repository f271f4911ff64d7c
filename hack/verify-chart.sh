#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Checks that the files generated from the chart are current, and that it passes the lint of both versions of helm.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "${scratch}"' EXIT

made=(artifacts charts test/devcluster)

# fingerprint prints a hash of the folders with generated files, committed or not.
fingerprint() {
  rm -f "${scratch}/index"
  GIT_INDEX_FILE="${scratch}/index" git add --all -- "${made[@]}"
  GIT_INDEX_FILE="${scratch}/index" git write-tree
}

before=$(fingerprint)
hack/update-manifests.sh
if [[ $(fingerprint) != "${before}" ]]; then
  git status --short -- "${made[@]}" >&2
  echo "the files generated from the chart were out of date; they have been regenerated: commit them" >&2
  exit 1
fi

helms=("$(go run ./hack/dev tool helm)" "$(go run ./hack/dev tool helm3)")

# lint runs the lint of both versions of helm with some values. A helm binary that is not built as a release assumes an ancient
# Kubernetes version unless one is given.
lint() {
  local helm
  for helm in "${helms[@]}"; do
    "${helm}" lint --strict --quiet --kube-version 1.28.0 --namespace slipstream-system "$@" charts/slipstream
  done
}

lint
lint --values test/devcluster/values.yaml
lint --set 'replicas=3,storage.backend=etcd3,storage.etcd.servers={https://etcd:2379},storage.etcd.tlsSecret=etcd,encryption.configSecret=keys' \
  --set 'networkPolicy.egress.restrict=true'
lint --set 'tls.mode=cert-manager,metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true'
lint --set 'tls.mode=secret,attribution.audit.clientCASecret=audit,attribution.admission.mode=none,hostNetwork=true,securePort=10260' \
  --set 'pipelines.enabled=true,environments.createNamespaces=true,watch.types=any,credentials.shop={git}'
lint --set 'page.enabled=true,page.url=https://slipstream.example.com,page.tls.mode=secret'
lint --set 'page.enabled=true,page.url=https://slipstream.example.com,page.replicas=2,page.tls.mode=cert-manager' \
  --set 'page.authentication=FrontProxy,page.frontProxy.clientCA.configMap=proxy,page.frontProxy.groups={team}'
