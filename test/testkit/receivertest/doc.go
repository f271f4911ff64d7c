// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package receivertest has receivers for tests of those who send to them.
//
// A receiver is a real HTTP server that takes one format. It is stricter than the consumers whose formats these are: a call must have
// exactly the fields that it may have, no null, each key once, and no more names than the consumer takes. A call that has not is answered
// 400, and the test fails at its end unless it asks for the receiver's Faults. What calls have said is kept as the consumer would
// keep it, and calls are recorded with their answers. A receiver answers as it is told to, too: late, wrong, or not at all.
package receivertest
