// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table keeps what must outlive the process and is not an API object:
// tables of ordered rows over etcd's KV interface, the same on bbolt and on etcd.
//
// # Keys
//
// The row k of table t is the key
//
//	{prefix}/{t}/{k}
//
// with the table's name escaped as a segment of a URL's path, so that no table's
// rows lie among another's. The row's key is taken as it is: rows are ordered by
// its bytes, and whoever wants numbers in order writes them in a fixed width.
//
// # Values
//
// Values pass through a transformer on their way, with the whole key as additional
// data: a sealed value opens under its own key only. The prefix and the tables'
// names must therefore never change.
//
// # Durability
//
// What was put or deleted is on disk when the call returns. A call that fails may
// have done a part of its work, and one whose context ends may still do it.
package table
