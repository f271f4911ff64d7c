// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node answers how the Pods of a development cluster run, which has neither kubelet, scheduler nor kube-proxy: each
// Pod gets a network of its own, each container is a process that sees what its Pod says, and the addresses of Services
// lead to Pods that are ready. Nothing listens but on loopback. Nodes need Linux and root.
package node
