// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import "slices"

// Mask returns a copy of an object in which mask replaces each value that Encrypt encrypts: all but those that are known to be
// harmless. The path of a value holds the keys that lead to it; a list item has the path of its list. The metadata of SOPS is left
// out.
func Mask(content map[string]any, mask func(path []string, value any) any) map[string]any {
	covers := Covered(content)
	masked := make(map[string]any, len(content))
	for key, value := range content {
		if key != metadataField {
			masked[key] = maskValue([]string{key}, value, covers, mask)
		}
	}
	return masked
}

// Covered returns a function that reports whether Encrypt encrypts the value at a path of an object.
func Covered(content map[string]any) func(path []string) bool { return ruleOf(content).covers }

func maskValue(path []string, value any, covers func([]string) bool, mask func(path []string, value any) any) any {
	switch value := value.(type) {
	case map[string]any:
		masked := make(map[string]any, len(value))
		for key, item := range value {
			masked[key] = maskValue(append(slices.Clip(path), key), item, covers, mask)
		}
		return masked
	case []any:
		masked := make([]any, len(value))
		for i, item := range value {
			masked[i] = maskValue(path, item, covers, mask)
		}
		return masked
	case nil:
		return nil
	}
	if covers(path) {
		return mask(path, value)
	}
	return value
}
