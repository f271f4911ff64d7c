// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package teardown deletes what an environment has written when the environment is deleted.
//
// With the policy Delete, the objects are deleted in the reverse order of writing, without waiting in between: an object
// that cannot be deleted must not keep copies of production's Secrets. Workloads are deleted in the foreground, so that the
// environment exists as long as its Pods run. PersistentVolumeClaims of StatefulSets stay, as with any deletion of a
// StatefulSet.
//
// A target that the environment has created is deleted as well, once the environment's objects are deleted, unless it
// contains other objects. Objects that every namespace has do not count, nor do types that are useless alone (Events,
// Endpoints, Leases), nor objects with an owner. If the server lacks the permission to list a type, the namespace stays. It
// also stays if the types of an API group still cannot be discovered ten minutes after the deletion. An object that is
// created at the moment of the namespace's deletion is lost, as always.
//
// With the policy Orphan, everything stays, including the labels, which help users find the objects. No other environment
// adopts them, since it has another UID.
package teardown
