// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncer carries out one sync of an environment.
//
//   - A StateReader reads the state that a sync starts from.
//   - A Syncer plans from that state, and dry-runs or applies the plan. Then it stores what was applied, and records what the
//     environment depends on.
//   - An Executor runs a Syncer on behalf of SyncStatuses, and records the outcome in them.
//   - A Previewer returns what a sync would change, as the API shows it. It writes nothing and stores nothing.
//
// # Reading
//
// The StateReader writes nothing. What it returns may be a moment old: applying a step fails if its object has changed since.
//
// Environments of one catalog have its source in common. A plan in the background names the moment of the change that it is for, and uses
// what other plans have read of the catalog and the source after that moment, so it contains the change. What was read is kept for 30
// seconds and within a limit of bytes. What a caller may read is checked for each environment before. Syncs and previews read everything
// anew, and the target is never shared.
//
// An object is missing only if the API server itself says that there is no object of that name. Any other error ends the sync and
// names what could not be read: a plan that took a missing permission for a missing object would delete the object.
//
// Workloads come from CatalogWorkloads if these are of the requested revision, and from the stored revisions otherwise. In the
// source namespace, Services, HorizontalPodAutoscalers, PodDisruptionBudgets, Ingresses and NetworkPolicies are listed, because they
// select or name the workloads. ConfigMaps, Secrets and ServiceAccounts are read by name: the planner returns which ones it needs, and
// is called again with what was found until it needs nothing more. In the target namespace, what the environment has written is
// listed by label, everything else is read by name. The content of Secrets is never listed.
//
// # Permissions
//
// References of workloads are read with the permissions of the server, because the editor of the catalog consents to that. So each
// sync checks that the editor can still read them. Checks are cached for access.AllowedTTL or access.DeniedTTL. Types that the editor
// cannot read are not read. What the editor does not consent to, such as Secrets that are not shared, is read only if the user who
// requested the sync can read it. A sync without a requester is rejected.
//
// Before a plan is applied, the sync checks without the cache that its requester can read the catalog, and create, patch or delete what
// the plan does. The permissions that admission has checked may have been revoked while the request waited.
//
// Previews and plans have no requester: they also read what the editor does not consent to. They write nothing, and what they return
// leaves out the values of Secrets, of custom resources, and of ConfigMaps that only the environment refers to (see package plan). Only
// SecretDiff returns the values of Secrets.
//
// # Concurrent writes
//
// A step whose object has changed since it was read is not applied. The sync then reads and plans again, a limited number of times.
// An environment is synced by one Syncer at a time.
//
// # Restarts
//
// A sync has no journal. After a failure or a restart it runs again from the beginning: a plan contains only what is left to do, and
// objects that already match are stored and recorded as well. So a repeated sync has the same result as an uninterrupted one.
//
// The Executor writes to a SyncStatus that it is InProgress before the sync starts, then what is about to be written, and finally the
// outcome. It reads the record before each write, and writes only if nothing else has changed it. A record that is InProgress while
// no process works on it belongs to an interrupted sync. That sync is repeated, which counts as an attempt, and the record lists what
// all attempts have written. A sync that is interrupted at every attempt ends as Failed.
package syncer
