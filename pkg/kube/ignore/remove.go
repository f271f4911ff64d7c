// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"slices"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// remove removes what a path leads to from a value and returns the value. It also removes labels and annotations that
// become empty: a client that adds the only entry creates the map.
func remove(node any, p fieldpath.Path) any {
	switch inner := node.(type) {
	case map[string]any:
		removeField(inner, p)
	case []any:
		i := p[0].Find(inner)
		if i < 0 {
			return node
		}
		if len(p) == 1 {
			return slices.Delete(inner, i, i+1)
		}
		inner[i] = remove(inner[i], p[1:])
	}
	return node
}

func removeField(fields map[string]any, p fieldpath.Path) {
	name := p[0].Field
	child, ok := fields[name]
	if !ok || !p[0].IsField() {
		return
	}
	if len(p) == 1 {
		delete(fields, name)
		return
	}
	before := isEmpty(child, nil)
	fields[name] = remove(child, p[1:])
	if (name == "labels" || name == "annotations") && !before && isEmpty(fields[name], nil) {
		delete(fields, name)
	}
}

// isEmpty reports whether a map or list is empty, or an item has no fields except its keys.
func isEmpty(value any, keys []fieldpath.Key) bool {
	switch inner := value.(type) {
	case map[string]any:
		for name := range inner {
			if !slices.ContainsFunc(keys, func(k fieldpath.Key) bool { return k.Name == name }) {
				return false
			}
		}
		return true
	case []any:
		return len(inner) == 0
	}
	return false
}
