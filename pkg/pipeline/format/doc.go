// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package format encodes batches for consumers and interprets their responses.
//
// A format encodes a batch as an ordered list of calls: POST requests with a path below the URL of the sink. Deletions come before upserts.
// The encoding is deterministic, byte for byte, and every format accepts a repeated call. Empty arrays and objects are present, and times
// are RFC 3339 in UTC.
//
// The requests and responses follow the sources of the consumers; docs/decisions.md has the evidence.
package format
