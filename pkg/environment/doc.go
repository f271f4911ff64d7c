// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environment reconciles Environments: it decides when an environment is synced, and reports its state.
//
// A reconcile reads the environment and its records, takes up the results of completed syncs, creates records for what users and the
// spec request, chooses the record to start next, and writes the status once, on condition that the environment has not changed
// meanwhile. Every decision follows from the state that was read. A reconcile is quick: syncs run in the background, one for each
// environment, and so does planning what a sync would change. Both enqueue the environment when they end.
//
// # Restarts
//
// Every write is idempotent, because the names of objects follow from what caused them. The order of writes is:
//
//  1. The finalizer.
//  2. The SyncStatus of a sync, whose batch is the id of the request, the generation of the edit, or the offered revision. A request
//     stays in the status until its record has ended, because it contains the requested workloads and the decisions about conflicts.
//  3. The status, which names the record among its activeSyncs. The sync starts only after that.
//  4. What the sync writes, and the final state of its record (pkg/environment/syncer).
//  5. The status again, with the results of the ended activeSyncs, once.
//
// A new leader finds records that are InProgress without a process that works on them. These are repeated before all others.
//
// # Order of syncs
//
// Syncs from the catalog come before those of dependencies. Of several records of one kind the newest is started, and supersedes the
// others. Automatic syncs wait for sync windows, pins and kill switches, for the permissions of the user who turned them on, and for the
// permission of the catalog's editor to read what is copied. Requested syncs wait for sync windows unless they are forced. All are
// queued to limit how many start in a minute and run at once.
//
// # Events
//
// Conditions, records and Events report on one environment, metrics on all. Events are published after the change that they report was
// written: a crash in between loses an Event, and no Event is published twice.
package environment
