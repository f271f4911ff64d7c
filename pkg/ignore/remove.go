// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"slices"
	"strconv"
)

// find returns the index of the item that a step leads to, -1 if there is none.
func (s step) find(items []any) int {
	switch {
	case s.isValue:
		return slices.IndexFunc(items, func(item any) bool { return textOf(item) == s.field })
	case s.keys != nil:
		return slices.IndexFunc(items, s.picks)
	}
	index, err := strconv.Atoi(s.field)
	if err != nil || index < 0 || index >= len(items) || strconv.Itoa(index) != s.field {
		return -1
	}
	return index
}

// picks says whether an item has the keys.
func (s step) picks(item any) bool {
	fields, ok := item.(map[string]any)
	return ok && !slices.ContainsFunc(s.keys, func(k key) bool {
		value, ok := fields[k.name]
		return !ok || textOf(value) != k.text
	})
}

// isField says whether the step leads to a field of a map.
func (s step) isField() bool { return s.keys == nil && !s.isValue }

// lookup returns what a path leads to.
func lookup(node any, p path) (any, bool) {
	for _, s := range p {
		switch inner := node.(type) {
		case map[string]any:
			child, ok := inner[s.field]
			if !ok || !s.isField() {
				return nil, false
			}
			node = child
		case []any:
			i := s.find(inner)
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

// remove takes what a path leads to out of a value and returns the value. Labels and annotations of which none is left
// go as well: who adds the only one makes the map.
func remove(node any, p path) any {
	switch inner := node.(type) {
	case map[string]any:
		removeField(inner, p)
	case []any:
		i := p[0].find(inner)
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

func removeField(fields map[string]any, p path) {
	name := p[0].field
	child, ok := fields[name]
	if !ok || !p[0].isField() {
		return
	}
	if len(p) == 1 {
		delete(fields, name)
		return
	}
	before := isHollow(child, nil)
	fields[name] = remove(child, p[1:])
	if (name == "labels" || name == "annotations") && !before && isHollow(fields[name], nil) {
		delete(fields, name)
	}
}

// isHollow says whether a map or list has nothing in it, or an item nothing but its keys.
func isHollow(value any, keys []key) bool {
	switch inner := value.(type) {
	case map[string]any:
		for name := range inner {
			if !slices.ContainsFunc(keys, func(k key) bool { return k.name == name }) {
				return false
			}
		}
		return true
	case []any:
		return len(inner) == 0
	}
	return false
}
