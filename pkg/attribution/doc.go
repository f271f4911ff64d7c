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
package attribution
