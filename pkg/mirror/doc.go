// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirror answers how a change in the cluster reaches the Git branches that rules
// send it to.
//
// The path of one change: a watch of pkg/kube/watch delivers it; the router renders it once
// (pkg/kube/manifest) and finds the destinations whose rules select it; a row in the outbox
// makes it durable; the worker of the destination's branch takes rows in order, groups
// them into commits, pushes, and only then removes the rows.
//
// A watch gives changes, a list gives seeds. Whenever a watch starts, restarts, or a
// selection changes, the worker lists the types concerned and compares what the cluster
// holds with what the branch holds, so every change that no watch delivered (the server
// was stopped, history was compacted) is found, deletions included.
//
// Nothing is acknowledged before the remote has accepted the push. A process that dies
// anywhere on this path finds, when it starts again, the rows that were not pushed, a note
// of the push that may or may not have landed, and the cluster itself.
//
// Beside what rules select, a destination takes files of other parts of the server (Deposits), in a folder of the server's
// own. They are not in the outbox: who hands one over keeps it until the remote has it.
package mirror
