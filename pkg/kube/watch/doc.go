// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch discovers, lists and watches the resources of the source cluster. It stores no objects.
//
//   - Types returns a Snapshot of the resource types that the API server serves. Snapshots are immutable. Selections are
//     resolved against them.
//   - Streams passes the events of watches to a Handler: one watch for each resource type and namespace.
//   - Lister returns the objects of one type, page by page.
//   - Namespaces returns the labels and annotations of namespaces.
//
// Streams and Lister read through a Reader, which returns whole objects or only their metadata.
//
// # Why no change is lost
//
// A stream reads the current resourceVersion R of its type, calls Handler.Listed(R), and then opens a watch from R. Every
// change after R is passed to Handler.Changed. A list that begins after the call of Listed is a consistent read at R or
// later, so it contains every change up to R. If a watch cannot be continued because its resourceVersion has been
// compacted, the stream starts again in the same way and calls Listed again.
//
// Changes between R and the resourceVersion of the list arrive both ways, and the consumer has to order them. In
// pkg/mirror, the worker of a branch lists and processes changes sequentially: it lists after Listed, and drops the
// changes at or below the resourceVersion of the list, which already contains them.
package watch
