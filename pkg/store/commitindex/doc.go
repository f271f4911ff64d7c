// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commitindex answers which commits of mirrored branches hold an object.
//
// Who pushes says before each push which commits would hold which objects, and after it that the remote has accepted them.
// Who has to name commits says which objects it cares for, is told when something has landed, and asks. Of objects that
// nobody cares for nothing is kept.
//
// # What is promised
//
// What Pushing was told is durable before the push is made, and Landed can be called again: if the pusher calls it at least
// once for each push that the remote has accepted, however many processes die meanwhile, every commit is told. It is kept
// for MaxAge, the newest MaxPerObject of each object, and the newest DefaultCapacity of all objects. Of an object that
// somebody begins to care for, earlier commits are not known.
//
// # Rows
//
//	interest                                                               what somebody cares for
//	pushes/{tip}/{number}                                                  what a push would bring, some of it
//	objects/{namespace}/{group}/{resource}/{name}/{destination}/{commit}   what has landed
//
// The rows of a push become those of its objects when it has landed. A push that never does grows old and goes.
package commitindex
