// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commits answers which commits of mirrored branches hold what a record of a catalog tells of.
//
// A record tells that objects of the source have changed between two of their versions: a Span each. What has landed in
// branches (pkg/store/commitindex) says of each commit which versions of an object it holds. A commit is named when the two overlap:
// of twenty changes that became twenty commits all are named, of a commit that holds changes of two records both name it. A
// comparison of a branch with the cluster knows no versions in between: its commit is named by the record whose change
// the branch did not have before.
//
// # What is promised
//
// A commit that lands after its record was written is named when it has landed: that a record waits is durable before the
// record is (Waiting). A record waits for landing.MaxAge, counted from when its change was seen, as long as it is among the
// newest MaxWaiting of its source namespace. Whoever looks through the waiting records after a restart, and whenever
// something has landed, names each commit at least once; that it is named twice changes nothing.
package commits
