// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node runs the Pods of a development cluster, which has no kubelet, scheduler or kube-proxy: each
// Pod gets a network of its own, each container is a process that sees the volumes of its Pod, and the addresses of Services
// lead to ready Pods. All sockets listen on loopback. Nodes need Linux and root.
package node
