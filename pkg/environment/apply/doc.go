// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply executes the steps of a plan in a cluster, after a dry run of all of them.
//
// # Dry run
//
// Before the first write, each step is sent as a dry run: server-side apply with strict validation, exactly as it is sent
// later. Deletions are dry-run as well, and so is a Pod of each workload: pod security and LimitRanges reject Pods, not the
// workloads that create them. A dry run consumes no quota, so the sum of all steps is checked against the ResourceQuotas
// that count objects. If anything is refused, nothing is written, and the report lists every refusal.
//
// Nothing can be dry-run in a namespace that does not exist. Apply creates it first, if the target allows that, because
// only then its policies and quotas are known; after a refusal it stays empty. Check does not create it, and reports that
// the steps are unchecked.
//
// # Writing
//
// Each write is conditional on the object that the plan was computed from; only its status may differ. An object that was
// created, changed, replaced or deleted since is left alone and reported as a conflict, and the caller plans again.
// Consecutive steps of the same resource run concurrently; the next ones start when all of them are done, because later
// objects may need earlier ones. After an error, running steps finish and no other step starts. A process that restarts
// plans again: steps that were executed need no repetition.
//
// Immutable ConfigMaps and Secrets, and Jobs whose template changes, are deleted and created again. Fields of other
// managers are lost, and the Job runs again.
//
// # Secrets
//
// Messages of API servers and webhooks may quote a Secret. Errors and reports about Secrets contain only field paths and
// the names of quotas, policies and webhooks.
package apply
