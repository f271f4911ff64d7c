// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package controlplane pins the programs of the local control plane: this module
// exists only so that their dependencies stay out of the product's go.mod.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
