// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

// mapOf returns a value as a map: nil, which reads as an empty one and may be deleted from, if it is none.
func mapOf(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

// listOf returns a value as a list, nil if it is none.
func listOf(value any) []any {
	items, _ := value.([]any)
	return items
}

// keep leaves the items of a list that are wanted, and no empty list.
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

// atMostOne makes a number that is greater than one, one.
func atMostOne(fields map[string]any, name string) {
	switch number := fields[name].(type) {
	case int64:
		fields[name] = min(number, 1)
	case float64:
		fields[name] = min(number, 1)
	}
}
