// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan answers what a sync of an environment would do: which objects it creates, updates and deletes in the target, in
// which order, and what of them changes; what it leaves alone, and why; and what it misses.
//
// A plan is made of a Situation, which is everything that it depends on. Nobody is asked, nothing is written, and no clock is
// read: the same situation has the same plan. What a step predicts is what server-side apply makes of the object, as found
// by the field manager of the API server itself. Only what admission adds, and defaults in the place of fields that go, are
// not known here; a server-side dry run tells.
//
// Nothing but what the environment has written is changed or deleted, unless the situation says force; then it may be changed.
// The texts of a plan hold no values of Secrets; its objects do.
package plan
