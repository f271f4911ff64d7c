// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package merge answers what is to be applied to an object that others change, too.
//
// An object has three versions: Base, what was last wanted of it; Live, what it is; and Desired, what is wanted of it now. What
// differs between Base and Live has been changed by others if one of them owns it, by managedFields, and our manager
// does not: what an admission webhook makes of our own fields is no change of anybody's. A field that is gone has no
// owner any more; it was removed by others if our manager does not own it either.
//
// In a branch, what others changed survives, unless what is wanted has changed there as well: then the two are in
// conflict, and somebody decides. What patches declare is always applied. Otherwise, what is wanted wins, and
// fields that nobody wants stay with whoever owns them.
//
// The result is for server-side apply by our manager, with force: fields that are to survive are not in it.
package merge
