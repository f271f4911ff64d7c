// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncstatus answers what may become of a SyncStatus: which states there are for each type, which follow which and
// at whose word, what changes with them, what a record is called, how its state reads in a sentence, when it is tried again
// and when it goes.
//
// New and Move are the only ways to give a record its state. The API refuses changes that they would not make, so that a
// record which was read too early cannot take back what happened since.
package syncstatus
