// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution determines the author of a change that a watch has reported.
//
// A watch event has the changed object, but not the user who changed it. Three signals name an author, with different
// reliability. An audit record of a request has the resourceVersion that the request created, and is exact. An admission
// review precedes the write; it has the content and the resourceVersion that the request starts from, and the request may
// still be refused. The object's managedFields name a tool, not a user.
//
// Reports of the first two signals are Facts. The replica that receives them (package webhook) stores them (package
// facts), and the leader reads them. Its Joiner matches Facts with Events.
//
// An unknown author is better than a wrong one: facts that contradict each other make the author unknown.
//
// # Matching facts with events
//
// The Joiner gathers the evidence about an event, and pure functions of it (the files match_*.go) return a verdict: the
// author, and the time until which to wait for facts that contradict it. Facts may arrive late, twice, in any order or
// never. So a fact counts once its source has had the time to report other candidates. That time is measured for each
// source. An event without facts waits longer while the audit has reported nothing that was completed after it: its fact
// may be held up. An event that need not wait is delivered by the goroutine that submits it.
//
// Events of one object are in a queue of their own, in order. The holder of the queue processes its first event without
// the Joiner's lock: it computes the content, decides and delivers. A delivery that blocks delays only its own object.
//
// # Limits
//
// A wrong author is possible only if facts are lost and another user requested the same change: either that user was
// admitted to make the same change of the same resourceVersion within a second (10 seconds without audit) and was then
// refused; or that user's request found the resulting state, changed nothing, and was audited while the event waited.
// Lost reviews are detected by audit facts about the same changes: for a minute after one, reviews of that type and
// namespace are not sufficient alone. Records of level Metadata have neither uid nor resourceVersion: with them, a
// request of another user for the object that changed nothing, within a second, is enough. A client that can forge facts
// can name any author as long as no other fact contradicts it.
package attribution
