#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Builds the programs that hack/publish-release.sh runs into a folder: before any of them gets a secret.
#
#   hack/build-release-tools.sh FOLDER

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/release-environment.sh

mkdir -p "$1"
folder=$(realpath "$1")
readonly folder
go build -o "${folder}/" ./hack/dev ./hack/release
go build -C hack/image -o "${folder}/" .
for tool in cosign crane helm; do
  ln --symbolic --force "$("${folder}/dev" tool "${tool}")" "${folder}/${tool}"
done
