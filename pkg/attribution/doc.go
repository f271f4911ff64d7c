// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution answers who made a change that a watch has told of.
//
// A watch says what has changed, not who changed it. Three signals say who, and they are worth differently much: the
// audit record of a request names the resourceVersion that the request made, and is exact. An admission review comes
// before the change is stored; it names the content and the resourceVersion that the request started from, and may be
// followed by a refusal. The object's managedFields name a tool, not a person.
//
// What the first two report are Facts. They are recorded (package factlog) by whichever replica receives them (package
// intake), and read by the one that leads, whose Joiner brings Facts and Events together.
//
// Better no name than a wrong one: facts that contradict each other make the author unknown.
//
// # How facts and events come together
//
// The Joiner gathers the evidence about an event, and pure functions of it (the files match_*.go) decide: who, and until when
// to wait for facts that would say otherwise. Facts come late, twice, in any order or never, so a fact counts once its
// source has had the time to tell of others who could be meant as well. That time is measured for each source. What
// waits for nothing is delivered by the goroutine that submits it.
//
// Events of one object wait in a room of their own, in order. Whoever holds the room is at work on its first event, without
// the Joiner's lock: it computes the content, decides and delivers. A delivery that blocks holds up its object only.
//
// # What is not found out
//
// A wrong author is possible where facts are lost, and only if somebody else did the same, too: was admitted to make the same
// change of the same resourceVersion, and refused, within a second (10 seconds where no audit is sent); or, found the state
// that was made, had nothing to change, and said so to the audit, while the change waited. Reviews that are lost are noticed
// by the audit of the same changes: for a minute after one, no review of that type and namespace is relied on alone. Records at level Metadata tell neither uid nor resourceVersion:
// with them it is enough that somebody else's request for the object, who changed nothing, was a second away. And whoever
// can forge facts can name anybody as long as no other fact says otherwise.
package attribution
