// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package annotation classifies annotations before an object leaves the cluster: which repeat the object's content, and
// which reveal nothing of a Secret.
//
// HoldsConfiguration reports, for any object, whether a tool stores a copy of the object in an annotation. That list
// can never be complete, so Secrets use an allow list instead: IsHarmless lists the safe keys, and every other
// annotation is treated like the data.
package annotation
