// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unreadable finds stored records that cannot be read, reports them, and sets them aside.
//
// A record that does not open under the keys that there are, or that does not decode, fails
// every list of its kind, and with it every watch cache and every informer. Nothing repairs it:
// it was damaged on the disk, or written under a key that is gone. So every replica looks for
// such records ([Monitor]), says so in its readiness, in a metric and in the error of each list,
// and a command moves them out of the store into a file ([Store.SetAside]).
//
// Records are read and removed as rows of etcd's KV interface, whatever the store is.
package unreadable
