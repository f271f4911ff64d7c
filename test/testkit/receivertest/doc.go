// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package receivertest provides receivers for tests of pipelines.
//
// A receiver is a real HTTP server for one format. It is stricter than the consumers of the formats: a call must have exactly the specified
// fields, no null, each object once, and no more objects than the consumer accepts. The receiver rejects other calls with 400, and they
// fail the test at its end unless it reads the receiver's Faults. The receiver keeps objects as the consumer would, and records the calls
// with the status of their responses. A test can make it respond late, with an error, or not at all.
package receivertest
