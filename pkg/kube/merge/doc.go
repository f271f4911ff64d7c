// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package merge computes what to apply to an object that other managers change too (a three-way merge).
//
// An object has three versions: Base, the previous desired version; Live, the object in the cluster; and Desired, the
// new desired version. A difference between Base and Live is a change by others if, by managedFields, another manager
// owns the field and our manager does not. What an admission webhook makes of our own fields is no such change. A field
// that no longer exists has no owner; others removed it if our manager does not own it either.
//
// In a branch, changes by others survive unless Desired changed the same field: then the field is in conflict until a
// user resolves it. Patches are always applied. In a shared environment, Desired wins, and fields that it does not have
// stay with their owners.
//
// The result is for server-side apply by our manager, with force: fields that survive are not in it.
package merge
