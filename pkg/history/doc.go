// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history stores Changes: who changed which object, and which commit contains the change.
//
// The mirror writes it. It prepares the Changes of a push before it sends the push, and records them once the remote has accepted
// it. Users read Changes through the API, and catalogs find the commits of their workloads here.
//
// # Durability
//
// Prepared Changes are durable before the push is sent. Record is idempotent: if the mirror calls it at least once for every push
// that the remote has accepted, each change has exactly one Change, however often the process dies. A Change never names a commit
// that no remote has accepted. Prepared Changes of a push that is never accepted expire.
//
// # Storage
//
// Changes are stored as objects of the API, where upstream's storage lists, watches and deletes them. They are written below the
// API: one transaction writes those of a whole push. The work store has the rows of prepared pushes and of the index:
//
//	pushes/{tip}/{number}              prepared Changes
//	blocks/{time}-{number}-{process}   entries of the index
//
// Lists are in the order of time, the newest first. Those with a selector read the index, and pages of all namespaces are merged from the
// keys of each.
//
// An entry of the index may remain after its Change was deleted. Readers skip it, and it expires.
package history
