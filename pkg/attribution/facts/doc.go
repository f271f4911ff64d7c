// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facts brings facts from the replicas that receive them to the one that leads.
//
// A replica writes the facts that it receives to a table of the work store, which all replicas share, and the leader
// follows that table by a watch, once for each of its controllers that asks who made changes. So nobody has to know who
// leads, and facts that nobody has claimed yet outlive a leader.
//
// # Rows
//
// A row holds facts as lines of JSON, compressed. There are two kinds of rows:
//
//	recent/{time}-{replica}-{number}   the facts that a replica has gathered, kept for a minute
//	lasting/{uid}/{hash}               a deletion that may take long, kept until the object is gone, at most a week
//
// Facts that the replica which leads has received itself reach its followers before they are written as well.
//
// A fact may be told twice. Nothing here depends on the order of facts.
package facts
