// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"slices"
	"strconv"
)

// IsField reports whether the step selects a field of a map.
func (s Step) IsField() bool { return s.Keys == nil && !s.IsValue }

// Find returns the index of the item that the step selects, or -1 if there is none.
func (s Step) Find(items []any) int {
	switch {
	case s.IsValue:
		return slices.IndexFunc(items, func(item any) bool { return Text(item) == s.Field })
	case s.Keys != nil:
		return slices.IndexFunc(items, s.matches)
	}
	index, err := strconv.Atoi(s.Field)
	if err != nil || index < 0 || index >= len(items) || strconv.Itoa(index) != s.Field {
		return -1
	}
	return index
}

// matches reports whether an item has the step's keys.
func (s Step) matches(item any) bool {
	fields, ok := item.(map[string]any)
	return ok && !slices.ContainsFunc(s.Keys, func(k Key) bool {
		value, ok := fields[k.Name]
		return !ok || Text(value) != k.Text
	})
}

// Lookup returns the value at the path.
func (p Path) Lookup(node any) (any, bool) {
	for _, s := range p {
		switch inner := node.(type) {
		case map[string]any:
			child, ok := inner[s.Field]
			if !ok || !s.IsField() {
				return nil, false
			}
			node = child
		case []any:
			i := s.Find(inner)
			if i < 0 {
				return nil, false
			}
			node = inner[i]
		default:
			return nil, false
		}
	}
	return node, true
}
