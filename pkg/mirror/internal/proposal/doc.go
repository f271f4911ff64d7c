// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proposal stores what is known of the pull request of a GitDestination, and writes its text.
//
// A Record says which pull request the destination has, or begins to open or to close: it is stored before the call to the host, so that
// the next process knows about a call whose result was lost. Declined are the files of a pull request that was closed without a merge: they
// are not proposed again until their object changes.
package proposal
