// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"reflect"
	"slices"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// set sets the value at a path, in place, and creates the maps and lists on the way. A new item of a list gets the place that it
// has in model. It returns false if the path leads through a value that is neither a map nor a list.
func set(root map[string]any, path fieldpath.Path, value any, model map[string]any) bool {
	_, ok := with(root, path, value, model)
	return ok
}

// with returns the node with a value at a path. A value at an index of a list is inserted, unless the list has it there.
func with(node any, path fieldpath.Path, value, model any) (any, bool) {
	if len(path) == 0 {
		return value, true
	}
	step := path[0]
	inner, _ := path[:1].Lookup(model)
	if step.IsField() {
		if node == nil {
			node = map[string]any{}
		}
		if fields, ok := node.(map[string]any); ok {
			child, ok := with(fields[step.Field], path[1:], value, inner)
			fields[step.Field] = child
			return fields, ok
		}
	}
	if node == nil {
		node = []any{}
	}
	items, ok := node.([]any)
	if !ok {
		return node, false
	}
	at := step.Find(items)
	if step.IsField() && len(path) == 1 && at >= 0 && !reflect.DeepEqual(items[at], value) {
		return slices.Insert(items, at, value), true
	}
	if at < 0 {
		if len(path) > 1 {
			return node, false
		}
		like, _ := model.([]any)
		return slices.Insert(items, placeOf(step, like, items), value), true
	}
	items[at], ok = with(items[at], path[1:], value, inner)
	return items, ok
}

// placeOf returns the index at which an item of model is inserted into items: after the nearest item before it that both have.
func placeOf(step fieldpath.Step, model, items []any) int {
	if step.IsField() { // An index that items do not have.
		return len(items)
	}
	for i := step.Find(model) - 1; i >= 0; i-- {
		if at := likeStep(step, model[i]).Find(items); at >= 0 {
			return at + 1
		}
	}
	return 0
}

// likeStep returns the step that selects an item of the same list.
func likeStep(step fieldpath.Step, item any) fieldpath.Step {
	if step.IsValue {
		return fieldpath.Step{Field: fieldpath.Text(item), IsValue: true}
	}
	fields, _ := item.(map[string]any)
	out := fieldpath.Step{Field: step.Field}
	for _, key := range step.Keys {
		out.Keys = append(out.Keys, fieldpath.Key{Name: key.Name, Text: fieldpath.Text(fields[key.Name])})
	}
	return out
}

// remove removes the value at a path, in place, and the maps and lists on the way that are empty without it, unless model has
// them empty.
func remove(root map[string]any, path fieldpath.Path, model map[string]any) {
	without(root, path)
	for end := len(path) - 1; end > 0; end-- {
		left, exists := path[:end].Lookup(root)
		if like, keeps := path[:end].Lookup(model); keeps && isEmpty(like) || !exists || !isEmpty(left) {
			return
		}
		without(root, path[:end])
	}
}

// without returns the node without the value at a path.
func without(node any, path fieldpath.Path) any {
	step := path[0]
	switch node := node.(type) {
	case map[string]any:
		inner, exists := node[step.Field]
		switch {
		case !exists:
		case len(path) == 1:
			delete(node, step.Field)
		default:
			node[step.Field] = without(inner, path[1:])
		}
	case []any:
		at := step.Find(node)
		switch {
		case at < 0:
		case len(path) == 1:
			return slices.Delete(node, at, at+1)
		default:
			node[at] = without(node[at], path[1:])
		}
	}
	return node
}
