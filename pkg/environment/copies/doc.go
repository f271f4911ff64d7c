// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package copies answers what was last applied in an environment, and what had been applied there as of earlier revisions of its
// catalog.
//
// That is the Base of the next merge; a target that somebody has deleted is rebuilt of it, and a rollback goes back to it,
// whatever has become of the source. Secrets are among it: all of it is sealed as the work store seals its rows, and the rows'
// keys, which are not sealed, say nothing of it, not even hashes.
//
// # Rows
//
//	environment/{uid}         that there may be rows of an environment, and what it is called
//	current/{uid}             the revision that was put last, 0 while the environment has none as a whole
//	head/{uid}/{revision}     which objects were applied as of a revision, and where their content is
//	content/{uid}/{number}    the content of an object, once for all revisions that have it; the number is a random one
//
// # Dying
//
// A head is written after what it names, and removed before it. Objects are put after they have been applied: whoever dies in
// between leaves what was put before, and the next merge finds of the objects in the cluster what our manager has applied to
// them. A death can leave content that no head names; Sweep removes it.
//
// An environment is worked on by one run at a time. Should another server, which does not lead any more, put something
// meanwhile, heads may name content that is gone. Such objects are as if they had never been put.
package copies
