// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate copies everything that the server has stored from files
// to etcd, or from etcd to files.
//
// # What is copied
//
// The keys of the objects and those of the working state, as they were at one moment.
// Keys and values stay as they are, byte for byte: values are encrypted under their
// keys, so neither is looked into and the encryption configuration goes along as it
// is. Leases get the time that they have left.
//
// # Revisions
//
// The resource version of an object is the revision of its last change, and the
// copy is a change. What was handed out before must never come again with another
// meaning, so the target's revision is at or above that of the source's objects
// before the first key is copied: files are advanced, and etcd, whose revision
// nobody can set, is refused or padded with writes. Afterwards the target is
// compacted. A watch or a list that goes on from an earlier resource version is
// told that it is too old and begins anew; it cannot miss a deletion from before
// the move, nor see half of a transaction that copied many keys. An update with an
// earlier resource version is a conflict, as after any other change.
//
// The working state has revisions that nobody sees; they need not be kept in order.
//
// # Interruptions
//
// The source is only read. Files are written in a folder of their own and put in
// place by one rename. In etcd a run that was interrupted leaves a part of the keys:
// a target that holds nothing but keys of the source, with their values, is taken for
// that and completed. Any other content is refused, or removed first if that is asked
// for.
//
// # Writers
//
// No server may run. The lock of the data directory says so of files. Of etcd nothing
// does, so the source is watched from the moment of the copy on: a change fails the
// migration, and a target that changes meanwhile does not compare equal.
package migrate
