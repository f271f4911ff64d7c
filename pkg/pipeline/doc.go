// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pipeline answers when which sink of a pipeline is told what, and what is said of it.
//
// What a sink must know is what the cluster has and its pipeline selects; what it knows is in its ledger. Whoever looks at the cluster
// (pkg/pipeline/observe) tells the ledgers what there is, each ledger (pkg/pipeline/ledger) says what differs and when it is due, and a
// worker for each sink tells it (pkg/pipeline/delivery). Nothing here depends on having seen every event: what is missed is found by the
// next list.
//
// Whatever happens to a pipeline has it looked at, in a turn: it is read as it is now; what its spec asks for is brought about; what
// somebody has asked for begins or has ended; and its status is written, at most once a second. A turn is quick. Lists and deliveries
// go on beside it, so that a sink that fails or hangs stops neither the turns nor another sink.
//
// # What is true when the process dies
//
//  1. The ledger has what was delivered, what is to be, and the batch that was on its way: that one is repeated with its ID, by which
//     receivers know it again.
//  2. Every start lists what there is and compares it with the ledgers, deletions included.
//  3. A request stays in the status until its run has ended, and is repeated.
//  4. Rows of sinks that are gone, or that are at another address now, are removed at the start if that was not done before.
//
// # Who may
//
// What is sent is sent with the permissions of who last edited the pipeline. While they have lost one, nothing is watched or sent.
package pipeline
