// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pipeline reconciles SyncPipelines: it observes the objects that a pipeline selects and delivers their changes to its sinks.
//
// The observer (pkg/pipeline/observe) reports the existing objects to the ledgers of all sinks. Each ledger (pkg/pipeline/ledger) stores
// what its sink has received, computes the changes and when they are due; a worker for each sink delivers them (pkg/pipeline/delivery).
// Nothing depends on having seen every event: the next list finds what was missed.
//
// A reconcile reads the pipeline, starts or stops what its spec requires, starts requested runs and finishes completed ones, and writes the
// status, at most once a second. It is short: lists and deliveries run in the background, so that a sink that fails or hangs blocks neither
// the controller nor another sink.
//
// # After a crash
//
// 1. The ledger has what was delivered, what is pending, and the batch in flight. That batch is sent again with the same ID, by which
// receivers can detect the repetition.
// 2. Every start lists the objects and compares them with the ledgers, deletions included.
// 3. A request stays in the status until its run has finished, and is repeated.
// 4. Rows of sinks that were deleted or have another address are deleted at the start.
//
// # Permissions
//
// Objects are sent with the permissions of the user who last edited the pipeline. While that user lacks one of them, nothing is watched or
// sent. A type that appears later is watched only after these permissions were reviewed with it.
package pipeline
