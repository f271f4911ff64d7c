// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package detect answers which environments have copies of what has changed in a source, and has it recorded.
//
// What environments have copies of is in an index (pkg/environment/detect/index), which says what is watched: each type in each
// namespace that has an object of which there is a copy. An event costs one look at it. What nobody has a copy of, and what is
// as it was known to be, is dropped in silence. The rest gathers in a batch of pkg/syncstatus/pending. At the end of the window the
// objects are read as they are then, and each environment concerned is told in one SyncStatus of the type Dependency.
//
// HorizontalPodAutoscalers, PodDisruptionBudgets, Ingresses, NetworkPolicies and Services are watched in all sources besides, since a new one may
// be about workloads of any environment. Environments hear that one of them has changed, once for each window, and plan anew. Those without an
// EnvironmentDependency are in no record.
//
// # What is known of an object
//
// A version of an object is the keyed hash of its canonical form, as plans copy it, or that there is none. An
// EnvironmentDependency has two: the one that was copied, and the newest that has been told of, seenHash. Only what differs from
// the newest is news. So nothing is news because a watch begins again or a process does, and what somebody has dismissed is not
// told again before it changes again.
//
// # What a record says
//
// The open record of an environment names what differs from the copies: what is changed back is taken out of it, as is what a
// run has copied meanwhile, and a record of which nothing is left is Superseded. One of a run that has failed keeps what it names,
// of which the run may have written a part. Beside a record whose run goes on a new one is begun.
//
// # What is true when the process dies
//
// For each environment, in this order, each write can be repeated:
//
//  1. The SyncStatus, whose name follows from the batch if it is a new one.
//  2. The environment's status names it.
//  3. The EnvironmentDependencies have been seen in the versions that it tells of.
//
// When all environments are told, the batch is done. Before, it is handed out again.
//
// # Secrets
//
// Objects are held no longer than it takes to hash them. What is kept of them, in memory too, is the hash and their metadata
// without annotations, which may repeat the content.
package detect
