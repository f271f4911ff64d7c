// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger stores what each NotificationSink has been notified of, and what it has not.
//
// The rows of a sink begin with its uid:
//
//	{uid}/state          counters, the sequence, and up to which Change it has collected
//	{uid}/pending        the notifications to send
//	{uid}/sending        the message that is being sent; it does not change until the receiver has accepted or rejected it
//	{uid}/found/{hash}   a finding of which the sink has been notified, or will be
//	{uid}/thread/{hash}  the first message about a subject, for replies in its thread
//
// A write stores the notifications no later than the findings that they are about. A process that dies in between observes those again and
// notifies again: at least once. The sizes are bounded: [MaxBytes] for pending and for sending.
package ledger
