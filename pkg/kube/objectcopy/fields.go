// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

// mapOf returns a value as a map. Any other value yields nil, which reads as an empty map and may be deleted from.
func mapOf(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

// listOf returns a value as a list, nil if it is none.
func listOf(value any) []any {
	items, _ := value.([]any)
	return items
}

// keep removes the list items that are not wanted, and the list itself if it becomes empty.
func keep(fields map[string]any, name string, wanted func(item any) bool) {
	var kept []any
	for _, item := range listOf(fields[name]) {
		if wanted(item) {
			kept = append(kept, item)
		}
	}
	if len(kept) == 0 {
		delete(fields, name)
		return
	}
	fields[name] = kept
}

// atMostOne limits a number to one.
func atMostOne(fields map[string]any, name string) {
	switch number := fields[name].(type) {
	case int64:
		fields[name] = min(number, 1)
	case float64:
		fields[name] = min(number, 1)
	}
}
