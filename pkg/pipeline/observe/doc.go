// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe answers which objects the cluster has that a pipeline selects.
//
// An Observer keeps one watch for each type, however many pipelines take it, and tells the Target of each what there is:
// CustomResourceDefinitions whole, everything else by its metadata, in the one version that its group prefers. What pipelines make
// themselves, by their label, is not told of.
//
// # Why nothing is lost
//
// Whatever may have been missed is found out by a list, which a Target is told of object by object and then as a whole (Retain), so
// that it finds out what is gone. A type is listed for a Target when that begins to take it, and for all its Targets whenever the watch
// starts anew, after source.Handler.Listed. A list that fails is made again, later; until one succeeds, nothing is concluded from what
// was not seen.
//
// Changes of a type wait while it is listed. Before the list they have been told, and the list, being consistent, is newer; after it,
// those up to its resourceVersion are dropped.
//
// Types come and go with the snapshots of the source.Catalogue. Of a type that is gone, Targets are told that nothing is left
// (RetainTypes), unless discovery of its group failed.
package observe
