// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery answers what becomes of a batch that is sent to a receiver over HTTP, and when one that failed is sent again.
//
// A batch becomes one or several calls, whose bodies pkg/pipeline/format makes and whose answers it judges. Each call ends in a
// verdict: delivered, to be tried again, or rejected. Whether a receiver has got a call whose answer was lost is not known;
// such a call is sent again, and receivers take the same call twice.
//
// # Trust
//
// Where a batch goes and what the receiver answers are other people's. Connections go through the dialer of pkg/access/egress, to the
// host that the sink names and nowhere else. An answer is read up to 64 KiB, within the time that the call has, and shown as one
// printable line without the credentials, which are read for each batch and kept no longer.
package delivery
