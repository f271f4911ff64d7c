// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gather answers in which situation an environment is when it is to be synced: everything that its plan depends on.
//
// Nothing is written, and nothing is taken from caches: what is read may be a moment old, and who carries the plan out finds out
// what has changed since.
//
// # What is there
//
// An object is absent only if the API server says that there is none of the name. Whatever else goes wrong is an error that
// names what was read: a plan that took a missing permission for a missing object would take the object away.
//
// # What is read
//
// What the catalog offers comes from its CatalogWorkloads as far as they are of the revision, and from what is kept of
// revisions otherwise. Of the source, Services, HorizontalPodAutoscalers, PodDisruptionBudgets, Ingresses and NetworkPolicies are
// listed, because it is they that say what they are about. ConfigMaps, Secrets and ServiceAccounts are read by name, as far as they are referred to:
// the planner says which, by what the environment makes of what refers to them, and is asked again with what was found. Of the
// target, what the environment has written is listed by its labels, and the rest is read by name. No Secret is ever listed with
// its content.
//
// # By whose permissions
//
// What workloads refer to is read with the rights of the server, because the catalog's editor consents to that. So it is found out for
// each situation whether the editor may read it still; the cluster is asked, unless it has answered within rights.GrantKept or
// rights.LossKept. Of a type that the editor may not read, nothing is read. What the editor does not consent to, as Secrets that are not
// shared, is read for a run only if the user who asked for it may read it; if that user is not known, it is not.
package gather
