// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// changed reports whether a comparison has a difference at a path.
func changed(c *typed.Comparison, p fieldpath.Path) bool {
	return c.Added.Has(p) || c.Modified.Has(p) || c.Removed.Has(p)
}

// itemIn returns the outermost list item on the path to a field that is in the set, nil if there is none. Only items
// with keys count; an item that is a value is a field.
func itemIn(set *fieldpath.Set, p fieldpath.Path) fieldpath.Path {
	for i, element := range p {
		if element.Key != nil && set.Has(p[:i+1]) {
			return p[: i+1 : i+1]
		}
	}
	return nil
}

// isKey reports whether a field is a key of the list item that contains it.
func isKey(p fieldpath.Path) bool {
	last := len(p) - 1
	if last < 1 || p[last-1].Key == nil || p[last].FieldName == nil {
		return false
	}
	return slices.ContainsFunc(*p[last-1].Key, func(key value.Field) bool { return key.Name == *p[last].FieldName })
}

// pathsOf returns the paths of a set as copies: the set's own iterator reuses its path.
func pathsOf(set *fieldpath.Set) []fieldpath.Path {
	var paths []fieldpath.Path
	for p := range set.All() {
		paths = append(paths, p.Copy())
	}
	return paths
}

// below returns the fields of a set below a path.
func below(set *fieldpath.Set, p fieldpath.Path) *fieldpath.Set {
	for _, element := range p {
		set = set.WithPrefix(element)
	}
	return set
}
