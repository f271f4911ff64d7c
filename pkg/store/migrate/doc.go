// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate copies all stored data from files to etcd, or from etcd to files.
//
// # Content
//
// The keys of the objects and of the working state are copied as of a single revision. Keys and values are copied byte
// for byte: values are encrypted with their keys as additional data, so they are not decrypted and the encryption
// configuration remains valid. Leases get their remaining time to live.
//
// # Revisions
//
// The resource version of an object is the revision of its last change, and the copy is a change. A resource version that
// was handed out before must never be reused for another change. So before the first key is copied, the target's revision
// must be at or above that of the source's objects: files are advanced; etcd, whose revision cannot be set, is rejected
// or padded with writes. Afterwards the target is compacted. A watch or list with an earlier resource version fails
// because it is too old, and the client lists again; it can neither miss a deletion from before the migration nor see
// half of a transaction that copied many keys. An update with an earlier resource version is a conflict, as after any
// other change.
//
// Revisions of the working state are not visible to clients and need not be preserved.
//
// # Interruptions
//
// The source is only read. Files are written to a separate folder and put in place by a single rename. In etcd, an
// interrupted run leaves a part of the keys: a target that holds only keys of the source, with the same values, is
// treated as such and completed. A target with any other content is rejected, or emptied first if requested.
//
// # Concurrent writers
//
// No server may run. For files, the lock of the data directory enforces this. For etcd there is no such lock. So the
// source is watched from the revision of the copy on, and a change fails the migration; and a target that changes
// meanwhile fails the comparison.
package migrate
