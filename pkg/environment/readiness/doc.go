// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness watches the workloads that environments have written and computes whether they are ready.
//
// One watch for each workload type serves all environments; a label selects the workloads. Only the identity and the state
// of each are kept. Readiness is the kstatus of the workload: a running Job is ready, and a CronJob always is. Pods are not
// watched, so the reason why a Pod does not start is known only if the workload reports it: after progressDeadlineSeconds,
// or if Pods cannot be created.
package readiness
