// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commits matches the SyncStatuses of catalogs with the commits that hold the changes they record.
//
// A SyncStatus records that objects of the source changed from one version to another: a Span for each object. The history
// (pkg/history) has the versions of an object that each commit holds. A commit is named if the two overlap: all
// commits of a change that became several, and one commit in the records of all changes that it holds. A commit made by a
// comparison of a branch with the cluster holds no intermediate versions; it is named by the record of the change that the
// branch did not have before.
//
// # Why this is not a second index
//
// A commit may be pushed after its record was written. Waiting stores which records are still to name commits, and the spans
// that they recorded: what to look up in the history, and not what it answers. It holds no commits.
//
// # Durability and bounds
//
// A record waits durably before it is written. It waits for MaxAge from when its change was detected, while it is
// one of the newest MaxWaiting of its source namespace. A caller that goes through the waiting records after a restart, and
// whenever the history has new Changes, names each commit at least once. Naming a commit twice has no effect.
package commits
