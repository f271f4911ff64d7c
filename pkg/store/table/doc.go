// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table stores tables of ordered rows over etcd's KV interface, the same on bbolt and on etcd. They hold what must
// outlive the process and is not an API object.
//
// # Keys
//
// The row k of table t is the key
//
//	{prefix}/{t}/{k}
//
// with the table's name escaped as a segment of a URL's path, so that tables do not
// overlap. The row's key is stored as it is: rows are ordered by its bytes, so
// numbers in keys must have a fixed width.
//
// # Values
//
// Values pass through a transformer, with the whole key as additional data: an
// encrypted value can only be decrypted with its own key. The prefix and the
// tables' names must therefore never change.
//
// # Durability
//
// Rows are on disk when the call that puts or deletes them returns. A call that
// fails may have done a part of its work, and a call whose context has ended may
// still do it. A [Buffer] writes later, and reports what has become durable.
package table
