// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package item defines what pipelines send of an object, and detects when it has changed.
//
// A Key identifies an object, an Item is what is sent of it: the metadata of an instance, or the name of a CustomResourceDefinition and a
// hash of its spec. An Item contains nothing else of an object: no spec, no status, no data. Annotations in which tools store a copy of the
// object are left out. Of a Secret, only the few annotations that are known to be harmless are included (pkg/kube/annotation).
package item
