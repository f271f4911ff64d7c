// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncstatus defines the life cycle of SyncStatuses: the states of each type, the transitions between them and who may request
// them, the fields that change with the state, the name of a record, the summary of its state, when it is retried, and when it expires.
//
// Only New, Move, Resume and Claim change the state of a record. The API rejects all other changes, so a client with an outdated
// record cannot revert later changes.
package syncstatus
