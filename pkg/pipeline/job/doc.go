// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job answers what becomes of a batch that a Kubernetes Job is to handle.
//
// A batch becomes a Job from the sink's template, and a ConfigMap with the batch that the Job mounts. The Job comes first and
// owns the ConfigMap, so nothing is left behind by whoever dies in between or deletes the Job; its Pods wait for what they mount. The
// batch is delivered when both exist. What the Job makes of it is the Job's business: it has its own retries.
//
// # Repeating
//
// The name of the Job follows from the batch. A batch that comes again, since nobody knows what became of it, finds its Job and
// adds what is missing. Nothing is remembered here: which Jobs run is asked each time, by their labels.
package job
