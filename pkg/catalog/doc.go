// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog answers how what changes in a source namespace comes into the catalogs that follow it, and is recorded.
//
// The path of one change: a watch of pkg/source delivers it; it is dropped unless a catalog selects or holds the object and
// its content is another; it gathers with others of the namespace in a batch of pkg/catalog/intake; at the end of the window
// the objects are read as they are then, and a pure function, plan, says what each catalog of the namespace becomes.
//
// # What is true when the process dies
//
// The status of a catalog says what it offers, and a single write changes it: what a plan compares with is the status, and
// nothing else. Around it, in this order, each write can be repeated:
//
//  1. CatalogWorkloads, the content. They may be one revision ahead of the status.
//  2. The SyncStatus, whose name follows from the batch: it is written over, not twice. When its revision is not ahead of
//     that of the status, its batch is over.
//  3. The status of the catalog.
//  4. CatalogWorkloads that nothing refers to any more go, and the batch is done.
//
// A preview changes no status, so its order is another: the SyncStatus, and then what CatalogWorkloads say was last seen.
//
// # Edits
//
// An edit of the spec, like a request to read the source anew, has a record with an actor. What the source changed by itself
// before is recorded first, in a batch that is closed early, so that it is not said to be the editor's work.
package catalog
