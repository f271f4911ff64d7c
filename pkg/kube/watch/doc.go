// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch answers what the source cluster serves and what changes in it.
//
// It keeps no objects. Three doors give everything that a consumer needs:
//
//   - Types: which resource types the cluster serves, as immutable Snapshots that rules are resolved against.
//   - Streams: one watch per resource type and namespace scope, shared by all consumers, forwarded to a Handler.
//   - Lister: the objects of one type, page by page, to compare with what a consumer has recorded.
//
// Streams and Listers read whole objects or, where nothing else is needed, metadata alone, as their Reader does.
//
// Namespaces adds the labels that namespace selectors need.
//
// # Why nothing is lost
//
// A stream starts by asking for the type's present resourceVersion R, calls Handler.Listed(R), and only then opens a
// watch from R: every change after R arrives through Handler.Changed. A list that begins after Listed was called is a
// consistent read and therefore reflects R or something newer: every change up to R is in it. When a watch cannot be
// continued because its resourceVersion has been compacted, the stream starts again in the same way and Listed is
// called again.
//
// Changes between R and the list's own resourceVersion arrive both ways, and the consumer decides which of the two
// knows better. In pkg/mirror that is the worker of a branch, which lists and takes changes one after the other: it
// lists after Listed and drops the changes at or below the resourceVersion of the list, whose outcome the list has
// brought.
package watch
