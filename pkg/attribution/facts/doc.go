// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facts stores facts and sends them from the replicas that receive them to the leader.
//
// A replica writes the facts that it receives to a table of the work store, which all replicas share, and the leader
// follows that table by a watch, once for each controller that attributes changes. So replicas need not know the leader,
// and unclaimed facts outlive it.
//
// # Rows
//
// A row holds facts as lines of JSON, compressed. There are two kinds of rows:
//
//	recent/{time}-{replica}-{number}   the facts that a replica has collected, kept for a minute
//	lasting/{uid}/{hash}               a deletion that may take long, kept until the object is deleted, at most a week
//
// Another table, "factlags", has a row for each controller: how late facts are after their changes, as the leader has measured. The next
// leader waits no longer for them.
//
// Facts that the leader has received itself reach its followers before they are written, and once more afterwards.
//
// A fact may be sent twice. Nothing here depends on the order of facts.
package facts
