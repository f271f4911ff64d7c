// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog reconciles AppCatalogs: it captures the changes of source namespaces in the catalogs that follow them, and records them.
//
// A change is delivered by a watch of pkg/kube/watch. It is ignored unless a catalog selects or holds the object and the content of the
// object has changed. It is collected with other changes of the namespace in a batch of pkg/syncstatus/pending. At the end of the batch
// window the objects are read in their current state, and a pure function, newPlan, computes the next state of each catalog of the
// namespace.
//
// # Crash safety
//
// The status of a catalog contains what the catalog offers, and a single write changes it. A plan is computed against the status and
// nothing else. Every write is idempotent. The order of writes is:
//
//  1. The SyncStatus, whose name follows from the batch, so that a second attempt overwrites it. While its revision is newer than that
//     of the status, it is resumed before anything else. Afterwards its batch is complete.
//  2. The CatalogWorkloads, which are the content. They may be one revision ahead of the status, for that SyncStatus.
//  3. The revision, which a later rollback can restore.
//  4. The status of the catalog.
//  5. CatalogWorkloads and revisions that nothing refers to any more are deleted, and the batch is deleted.
//
// A preview does not change the status: the source state that was last observed is in the CatalogWorkloads.
//
// # Edits
//
// An edit of the spec has a record with an actor, as has a request to read the source again. Changes that the source made before the edit
// are recorded first, in a batch that is closed early, so that they are not attributed to the editor.
//
// # Rollbacks
//
// The content of each revision of the history is in the table revisions of the work store. A pin restores the content of one of them, as
// it was captured and rendered then, and keeps it whatever changes in the source and in the rest of the spec. Removing the pin is an edit
// that applies both.
//
// # Events
//
// Conditions, records and Events report on one catalog, metrics on all. Events are published after the change that they report was
// written: a crash in between loses an Event, and no Event is published twice. The SyncPolicy can suspend Events, and nothing else.
//
// # Commits
//
// If a mirror runs in the same process, a record names the commits that contain the source changes (pkg/history,
// pkg/catalog/commits): those that are pushed when the record is written, and later ones when they are pushed, whatever the state of the
// record is then. The changes that an edit makes are in no commit of the source.
package catalog
