// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package detect detects changes of source objects that environments have copies of, and records them in SyncStatuses.
//
// An index of all copies (pkg/environment/detect/index) determines what is watched: each type in each namespace with at
// least one copied object. An event costs one lookup. Events of objects without copies, and events that do not change the
// content, are dropped. The others are batched by pkg/syncstatus/pending. When the batch window ends, the objects are read
// again, and each affected environment gets one SyncStatus of the type Dependency.
//
// HorizontalPodAutoscalers, PodDisruptionBudgets, Ingresses, NetworkPolicies, Services and routes are watched in all
// sources as well, because a new one may be attached to workloads of any environment. A change of them makes the
// environments of the source plan again, once per window. Objects without an EnvironmentDependency are in no record.
//
// # Versions
//
// The version of an object is the keyed hash of its canonical form, as plans copy it, or the fact that it does not exist.
// An EnvironmentDependency has two: the copied one, and the newest recorded one, seenHash. Only a difference from the
// newest is a change, so a restarted watch or process reports nothing twice, and a dismissed change is not recorded again
// until the object changes again.
//
// # Records
//
// The open record of an environment lists the objects that differ from their copies. Objects that are changed back, and
// objects that a run has copied meanwhile, are removed from it; a record that becomes empty is Superseded. The record of a
// failed run keeps its list, because the run may have written a part of it. While a run is in progress, changes go to a new
// record.
//
// # Order of writes
//
// For each environment, in this order; each write can be repeated after a crash:
//
//  1. The SyncStatus. The name of a new one is derived from the batch.
//  2. The environment's status, which refers to it.
//  3. The seenHash of the EnvironmentDependencies.
//
// A batch is done when all environments have been processed. Until then, it is handed out again after a restart.
//
// # Secrets
//
// Objects are held only until they are hashed. Only the hash and the metadata without annotations, which may repeat the
// content, are kept, in memory as well.
package detect
