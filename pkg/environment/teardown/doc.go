// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package teardown answers what becomes of what an environment wrote when the environment is deleted.
//
// With the policy Delete, all of it is deleted in the reverse order of writing, and nothing waits for anything before it: what
// cannot be deleted does not keep production's Secrets where they are. Workloads go in the foreground: they are there until
// what they have started is gone, so that an environment is not gone as long as its Pods run. What a StatefulSet's claims hold
// stays, as it does when somebody deletes the StatefulSet.
//
// A target that the environment has created goes, too, once nothing of the environment is in it, if nothing of anybody else is.
// What every namespace has does not count, nor what is of no use by itself (Events, Endpoints, Leases), nor what is owned by
// something: it goes with its owner. What the server may not list may be there, so then the namespace stays. Somebody who puts
// something into a namespace in the moment in which it is deleted loses it, as always.
//
// With the policy Orphan, everything stays as it is, labels included: people find it by them, and no other environment takes it
// for its own, since it has another uid.
package teardown
