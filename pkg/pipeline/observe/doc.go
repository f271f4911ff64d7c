// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe reports the objects that pipelines select.
//
// An Observer keeps one watch for each type, shared by all pipelines. It reports to the Target of each pipeline CustomResourceDefinitions
// as whole objects and everything else as metadata, in the preferred version of each group. Objects that pipelines create themselves are
// recognized by their label and not reported.
//
// # Why no change is lost
//
// A list finds every change that a watch may have missed: it reports each object and then the complete set (Retain), so that the Target
// finds deletions. A type is listed for a Target when the Target subscribes, and for all Targets whenever its watch restarts, after
// watch.Handler.Listed. A failed list is retried; until one succeeds, objects that were not seen do not count as deleted.
//
// Changes of a type wait while it is listed. Earlier changes were reported before the list, which is consistent and newer; later ones are
// dropped up to the list's resourceVersion.
//
// The types are those of the snapshot with which the pipeline was set. When a type is not served any more, RetainTypes reports that none of
// its objects is left, unless discovery of its group failed.
package observe
