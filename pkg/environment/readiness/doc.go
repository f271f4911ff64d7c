// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness answers whether what environments have written came up.
//
// The workloads of all environments are watched at once, by the label that they have: one watch for each of their types, whatever the
// number of environments. Of each, only what is said of it is kept. Whether it is ready is what kstatus makes of its status, as
// for kubectl and other tools: a Job that runs is, and a CronJob always is. Pods are not watched, so why one does not start is
// said only where the workload says so: when its progressDeadlineSeconds are over, or when Pods cannot be created.
package readiness
