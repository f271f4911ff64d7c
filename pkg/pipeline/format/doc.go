// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package format answers how a batch is put to a consumer, and what the consumer's answer means.
//
// A format turns a batch into calls, in the order in which they are to be made: POST requests with a path below the URL of the sink.
// What is gone is told before what is new. The same batch makes the same calls, byte for byte, however often it is sent, and every format
// can be told the same twice. Arrays and objects are there when they are empty, and times are RFC 3339 in UTC.
//
// What these consumers take and answer was read in their sources; docs/decisions.md has the facts.
package format
