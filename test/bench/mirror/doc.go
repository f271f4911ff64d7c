// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirror measures the latency, throughput and cost of mirroring changes of a cluster
// to Git, with a real control plane and a Git server that share the processors of the
// machine. Where possible, it measures a counterpart in the same run, so that the ratio is
// comparable between machines.
package mirror
