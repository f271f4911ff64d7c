// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates manages the serving certificate and the authorities that the cluster trusts for it.
//
// # Sources
//
// [OwnAuthority] stores an authority in a Secret that all replicas share, and signs short-lived certificates in memory.
// [Files] are certificates that another party issues, with the authority that clients trust for them.
//
// # Division of work
//
// Every replica runs a [Controller]. It reads its source, adds the authorities that it needs to the bundles of the
// objects that register the server (the APIService, and webhooks for the server's Service), and serves a new
// certificate once all clients that trust the previous one trust it, too. The [Leader] removes authorities that are no
// longer needed, and creates a new authority if the one in the Secret is old or missing.
//
// Only the leader removes what another replica added, so that replicas with different modes or versions can serve side
// by side. API servers observe a bundle some moments after it changes: a certificate is served only once its authority
// has been in the bundles for [settle].
//
// # Triggers
//
// Each sync reads the current state and uses no cache. After a sync without changes, the next one runs when a watch
// reports a change of the APIService or the webhooks, when the files or the age of the certificate require it, and
// after [maxInterval] at the latest.
//
// # Crash safety
//
// A new authority is first added to the bundles, then stored in the Secret, and then signs. A crash between these steps
// leaves an unused authority in the bundles, which the next leader removes. An authority that a user puts into the
// Secret or the files is added to the bundles by the first replica that reads it, while certificates of the old one are
// served.
//
// No failure ends the server or its readiness: it continues with the current certificate, logs and counts the failure,
// and retries.
package certificates
