// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environment answers when an environment is synced, and what is said of it.
//
// Whatever happens to an environment has it looked at, in a turn: it is read as it is now, with its records; what came of
// runs is taken up; records come to say what people and the spec ask for; one of them is chosen whose run begins; and the status is
// written once, on condition that nobody has changed the environment meanwhile. What is to be done next follows from what was
// read alone (situation). A turn is quick: runs go on beside it, one of each environment, and what a catalog would bring is planned
// beside it, too. Both have the environment looked at again when they end.
//
// # What is true when the process dies
//
// Each write can be repeated, because what it makes has a name that follows from what asked for it:
//
//  1. The finalizer, before anything else.
//  2. The SyncStatus of a run, whose batch is the id of the request, the generation of the edit, or the revision that is offered. A
//     request stays in the status until its record has come to its end: it says which workloads are asked for, and what has been
//     decided about conflicts.
//  3. The status, which names the record among its activeSyncs. Only then the run begins.
//  4. What the run writes (pkg/environment/syncer), and the state that the record comes to.
//  5. The status again: what has ended of the activeSyncs is taken up, once.
//
// Whoever leads next finds records that are InProgress and that nobody works on. They go before all others, and are done again.
//
// # Who waits for whom
//
// What the catalog offers goes before what workloads refer to. Of several records of the one, the newest is begun; it takes the place
// of the others. Runs that nobody has asked for wait for windows, pins and kill switches, for the user who turned them on to be
// permitted what they do, and for the catalog's editor to be permitted to read what they copy. Those that a user asks for wait for windows, unless they are forced. All stand in line for how many may
// begin in a minute, and go on at once.
//
// # Telling
//
// People hear of an environment by its conditions, its records and Events, and of all of them by metrics. Events are made after
// what they tell of is written: a process that dies between the two leaves one out, and none is made twice.
package environment
