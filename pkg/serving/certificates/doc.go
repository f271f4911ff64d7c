// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates answers with which certificate the server serves, and which authorities the cluster trusts for it.
//
// # Where certificates come from
//
// [OwnAuthority] keeps an authority in a Secret that all replicas share, and signs short-lived certificates in memory.
// [Files] are certificates that somebody else makes, with the authority that clients are to trust for them.
//
// # Who changes what
//
// Every replica has a [Keeper]: it reads its source, adds the authorities that it needs to the bundles of the objects
// by which the cluster finds the server (the APIService, and webhooks that lead to the server's Service), and shows
// another certificate when everybody who trusts the one before trusts it, too. The [Leader] takes authorities out that
// nobody needs any more, and makes a new authority of the server's own when the one in the Secret is old or gone.
//
// What is added by one replica is never taken out by another that does not lead, so that replicas of two modes or
// versions can serve beside each other. What a bundle has is what API servers trust some moments later: a certificate is
// shown only after its authority has been in place for as long as [settle].
//
// # Rest
//
// A look reads what it decides by, and trusts no cache. Once one has found everything as it is to be, the next is made when
// a watch tells that the APIService or the webhooks have changed, when the files or the age of what is shown ask for it, and
// after [longestRest] at the latest.
//
// # Dying at any step
//
// A new authority of the server's own gets into the bundles first, then into the Secret, and then signs. Whoever dies
// between two of these leaves an authority in the bundles that nobody uses, which the next leader takes out. An
// authority that somebody puts into the Secret or into the files by hand is added to the bundles by whoever sees it
// first, while certificates of the old one are shown.
//
// Nothing that goes wrong ends the server or its readiness: it goes on with what it has, says so in its log, counts it,
// and tries again.
package certificates
