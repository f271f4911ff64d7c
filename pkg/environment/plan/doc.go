// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan computes what a sync of an environment does: which objects it creates, updates and deletes in the target
// namespace, in which order, and which fields change; which objects it leaves alone, and why; and what is missing in the
// source.
//
// Planning is pure. A plan follows from its Input alone: no API call, no write, no clock. Equal inputs have equal plans. A
// Step predicts the result of server-side apply with the field manager of the API server itself. The prediction does not
// include what admission adds, nor the defaults that replace removed fields; only a server-side dry run shows these.
//
// Only objects that the environment has written are changed or deleted. With Input.Force, other objects may be changed,
// too. The texts of a plan contain no values of Secrets; its objects do.
//
// # Terms
//
// The source is the namespace that the catalog follows, the target is the environment's namespace. Attached objects concern
// a workload without being referenced by it: autoscalers, PodDisruptionBudgets, NetworkPolicies, Ingresses, routes and
// Gateways. Denied types and objects are not read in the source because the required permission is lost or could not be
// checked; their copies stay unchanged. The base of an object is what the last sync applied, and the base of the three-way
// merge. A snapshot is everything that was applied with an earlier revision of the catalog. The index is the list of the
// environment's EnvironmentDependencyRecords.
package plan
