// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run answers what comes of one sync of an environment, from reading what there is to recording what was done.
//
// The situation is read, a plan is made of it, and its steps are tried and carried out. Then what was applied is kept, and at last
// the environment's EnvironmentDependencies and the index say what it has. An environment is synced by one run at a time.
//
// # Somebody else writes, too
//
// A step whose object has been changed since it was read is not done. Then everything is read and planned anew, a few times; what
// has been written is as planned by then.
//
// # Dying
//
// There is nothing to go on with: whoever dies, or fails, runs again. A plan is about what is still to be done, and what it leaves
// alone because it is as it should be is kept and recorded as well. So the same comes of a run that is repeated as of one that was
// not interrupted.
package run
