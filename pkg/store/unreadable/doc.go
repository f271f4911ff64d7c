// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unreadable finds stored records that cannot be read, reports them, and moves them out of the store.
//
// A record that cannot be decrypted with the available keys, or that cannot be decoded, fails every list of its kind, and
// with it every watch cache and every informer. It cannot be repaired: it was damaged on disk, or encrypted with a key
// that is lost. So every replica checks for such records ([Monitor]) and reports them in its readiness, in a metric and
// in the error of each list, and a command moves them out of the store into a file ([Store.SetAside]).
//
// Records are read and removed as rows of etcd's KV interface, for any store.
package unreadable
