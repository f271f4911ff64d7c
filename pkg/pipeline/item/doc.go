// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package item answers what a pipeline tells of an object, and when that has changed.
//
// A Key says which object is meant, an Item what is told of it: of an instance its metadata, of a CustomResourceDefinition its name and
// that its spec is another one. Nothing else of an object is ever in an Item: no spec, no status, no data. Annotations in which tools
// keep the object are left out as well, and those of a Secret altogether but for a few that are known to be harmless (pkg/kube/annotation).
package item
