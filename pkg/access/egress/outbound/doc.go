// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outbound makes requests to servers that users name. Neither these servers nor their responses are trusted.
//
// Connections are made by pkg/access/egress/proxy. At most 64 KiB of a response are read. Secrets that a server quotes are replaced before
// its text is shown.
//
// A request in a trace that is sampled has the header traceparent of W3C, which has only random IDs. Other requests have none.
package outbound
