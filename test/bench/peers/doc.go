// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package peers measures the server beside another tool that writes a cluster's changes to Git, GitOps Reverser, on one control plane and
// one Git server, in the version that hack/gitopsreverser pins. Each tool mirrors the same ConfigMaps to a repository of its own. A seed
// and a burst are measured while the other tool does not run; all else with both, and with the same changes. After each start, a tool must
// be ready and have mirrored twenty changes before anything is measured. What has arrived is read from the bare repositories.
//
// GitOps Reverser has the flags of its chart with attribution enabled, with Redis, and without the webhook that only CommitRequests need.
// One WatchRule with sourceNamespace "*" selects the namespaces, as its documentation describes for more than one. Its window of silence is
// the default, 5 s, for seeds and bursts, which it keeps together, and else the smallest, 0 s. Its time between two pushes, 5 s, cannot be
// configured.
//
// The server is built as in the image and has the defaults of its kinds, with the audit and the admission webhook. Audit events reach both
// tools as its documentation configures kube-apiserver, with a wait for batches of 200 ms and without throttling; GitOps Reverser's has
// examples with 1 s. kube-apiserver has one webhook, so a relay in the benchmark forwards the events to the tools that run.
package peers
