// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package controlplane pins the programs of the control plane of the oldest supported version of Kubernetes, for make test-versions. Its
// minor version is that of the chart's kubeVersion.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
