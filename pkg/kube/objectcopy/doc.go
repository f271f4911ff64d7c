// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectcopy answers what an object of one namespace is as a copy in another one.
//
// It begins with what pkg/kube/manifest writes of the object, and takes out what else is true in the source alone: its place in
// the network, the marks by which tools find what they own, finalizers. What a label selector uses stays, whoever set it.
// On demand, a copy is kept from doing what its source is there for: it runs once, at no time of its own accord, and is
// reached neither from outside nor under the names of its source.
package objectcopy
