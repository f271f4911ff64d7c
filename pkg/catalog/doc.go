// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog answers how what changes in a source namespace comes into the catalogs that follow it, and is recorded.
//
// The path of one change: a watch of pkg/kube/watch delivers it; it is dropped unless a catalog selects or holds the object and
// its content is another; it gathers with others of the namespace in a batch of pkg/syncstatus/pending; at the end of the window
// the objects are read as they are then, and a pure function, plan, says what each catalog of the namespace becomes.
//
// # What is true when the process dies
//
// The status of a catalog says what it offers, and a single write changes it: what a plan compares with is the status, and
// nothing else. Around it, in this order, each write can be repeated:
//
//  1. The SyncStatus, whose name follows from the batch: it is written over, not twice. While its revision is ahead of that of
//     the status, it is to be gone on with before anything else; afterwards its batch is over.
//  2. CatalogWorkloads, the content. They may be one revision ahead of the status, for that SyncStatus.
//  3. The revision, among those that can be gone back to.
//  4. The status of the catalog.
//  5. CatalogWorkloads and revisions that nothing refers to any more go, and the batch is done.
//
// A preview changes no status: what was seen last is in the CatalogWorkloads.
//
// # Edits
//
// An edit of the spec, like a request to read the source anew, has a record with an actor. What the source changed by itself
// before is recorded first, in a batch that is closed early, so that it is not said to be the editor's work.
//
// # Going back
//
// What was offered with each revision of the history is in the table revisions of the work store. A pin brings a catalog to one
// of them, as it was captured and rendered then, and keeps it there whatever the source and the rest of the spec become.
// Taking the pin away is an edit that takes both over.
//
// # Telling
//
// People hear of a catalog by its conditions, its records and Events, and of all of them by metrics. Events are made after
// what they tell of is written: a process that dies between the two leaves one out, and none is made twice. The SyncPolicy
// stops Events, and nothing else.
//
// # Commits
//
// Where a mirror runs in the same process, a record names the commits that hold what the source has changed (pkg/store/commitindex,
// pkg/catalog/commits): those that have landed when it is written, and the others when they land, whatever has become of
// the record since. What an edit changes is in no commit of the source.
package catalog
