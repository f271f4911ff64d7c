// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inputObjects holds the objects of an Input by key.
type inputObjects struct {
	source, live map[Key]*unstructured.Unstructured
	// originals are the objects that copies are made of, except the catalog's workloads.
	originals map[Key]*unstructured.Unstructured
}

// exclude drops the Secrets of the source that a consent does not cover. Plans then treat them like those of denied types, which are not
// read.
func (o *inputObjects) exclude(by *consent) {
	excluded := func(key Key, _ *unstructured.Unstructured) bool { return by.excludes(key) }
	maps.DeleteFunc(o.source, excluded)
	maps.DeleteFunc(o.originals, excluded)
}

// originalsOf returns the originals of a kind, sorted.
func (o *inputObjects) originalsOf(kind schema.GroupKind) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for key, object := range o.originals {
		if key.GroupKind == kind {
			found = append(found, object)
		}
	}
	return sortedByName(found)
}

// sortedByName sorts objects by name and kind, so that plans do not depend on the order of lists.
func sortedByName(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.SortedFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetName(), b.GetName()), strings.Compare(a.GetKind(), b.GetKind()))
	})
}
