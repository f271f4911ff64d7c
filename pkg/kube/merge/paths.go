// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// changed says whether a comparison found anything at a path.
func changed(c *typed.Comparison, p fieldpath.Path) bool {
	return c.Added.Has(p) || c.Modified.Has(p) || c.Removed.Has(p)
}

// itemIn returns the outermost item of a list on the way to a field that a set has, nil if there is none. Items are found by
// keys; a list's item that is a value is a field.
func itemIn(set *fieldpath.Set, p fieldpath.Path) fieldpath.Path {
	for i, element := range p {
		if element.Key != nil && set.Has(p[:i+1]) {
			return p[: i+1 : i+1]
		}
	}
	return nil
}

// isKey says whether a field is one by which the item that it is in is found.
func isKey(p fieldpath.Path) bool {
	last := len(p) - 1
	if last < 1 || p[last-1].Key == nil || p[last].FieldName == nil {
		return false
	}
	return slices.ContainsFunc(*p[last-1].Key, func(key value.Field) bool { return key.Name == *p[last].FieldName })
}

// pathsOf returns the paths of a set. Those that its own iterator has are good for a moment only.
func pathsOf(set *fieldpath.Set) []fieldpath.Path {
	var paths []fieldpath.Path
	for p := range set.All() {
		paths = append(paths, p.Copy())
	}
	return paths
}

// below returns the fields of a set that are below a path.
func below(set *fieldpath.Set, p fieldpath.Path) *fieldpath.Set {
	for _, element := range p {
		set = set.WithPrefix(element)
	}
	return set
}
