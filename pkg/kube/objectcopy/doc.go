// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectcopy computes the copy of an object for another namespace.
//
// A copy starts from the manifest that pkg/kube/manifest renders, without what is only true in the source namespace:
// network addresses, ownership marks of tools, finalizers. Labels that a selector uses stay, whoever set them. Options
// limit what a copy does: it runs one replica, starts no scheduled Jobs, and is not reachable from outside or under the
// names of its source.
package objectcopy
