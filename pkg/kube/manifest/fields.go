// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import "maps"

// open replaces the map at key by a shallow copy that may be changed, and returns the copy. It returns nil, which reads
// as an empty map and may be deleted from, when there is no map.
//
// The caller owns the object and most of it is kept, so only the maps on the way to a dropped field are copied. The
// parent of an opened map must have been opened before.
func open(parent map[string]any, key string) map[string]any {
	child, ok := parent[key].(map[string]any)
	if !ok {
		return nil
	}
	child = maps.Clone(child)
	parent[key] = child
	return child
}

// openEach replaces the list at key by a copy whose maps may be changed, and returns those maps.
func openEach(parent map[string]any, key string) []map[string]any {
	list, ok := parent[key].([]any)
	if !ok {
		return nil
	}
	copied := make([]any, len(list))
	var opened []map[string]any
	for i, item := range list {
		copied[i] = item
		if fields, ok := item.(map[string]any); ok {
			fields = maps.Clone(fields)
			copied[i] = fields
			opened = append(opened, fields)
		}
	}
	parent[key] = copied
	return opened
}

// keepItems replaces the list at key by the items that keep accepts, and removes the key when no item is left.
func keepItems(parent map[string]any, key string, keep func(item any) bool) {
	list, ok := parent[key].([]any)
	if !ok {
		return
	}
	var kept []any
	for _, item := range list {
		if keep(item) {
			kept = append(kept, item)
		}
	}
	if len(kept) == 0 {
		delete(parent, key)
		return
	}
	parent[key] = kept
}

// dropIfEmpty removes the value at key when it is null, an empty map or an empty list.
func dropIfEmpty(parent map[string]any, key string) {
	switch value := parent[key].(type) {
	case nil:
		delete(parent, key)
	case map[string]any:
		if len(value) == 0 {
			delete(parent, key)
		}
	case []any:
		if len(value) == 0 {
			delete(parent, key)
		}
	}
}

// mapAt returns the map below the given fields for reading, nil when there is none.
func mapAt(object map[string]any, fields ...string) map[string]any {
	for _, field := range fields {
		child, ok := object[field].(map[string]any)
		if !ok {
			return nil
		}
		object = child
	}
	return object
}

// textAt returns the string at key, empty when there is none.
func textAt(object map[string]any, key string) string {
	text, _ := object[key].(string)
	return text
}
