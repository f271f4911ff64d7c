// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// SelectorKeys returns the label keys that selectors within objects use. It recognizes selectors of any kind by their
// syntax; a false positive only keeps a label. Generated selectors, such as those of Jobs, do not count.
func SelectorKeys(objects ...*unstructured.Unstructured) sets.Set[string] {
	keys := sets.New[string]()
	for _, object := range objects {
		content, err := manifest.Canonical(object)
		if err != nil {
			content = object
		}
		collect(content.Object, keys)
	}
	return keys
}

func collect(value any, keys sets.Set[string]) {
	switch value := value.(type) {
	case map[string]any:
		for field, inner := range value {
			collectField(field, inner, keys)
			collect(inner, keys)
		}
	case []any:
		for _, item := range value {
			collect(item, keys)
		}
	}
}

func collectField(field string, value any, keys sets.Set[string]) {
	switch field {
	case "matchLabels", "selector", "podSelector":
		labels, _ := value.(map[string]any)
		for key, value := range labels {
			if _, ok := value.(string); ok {
				keys.Insert(key)
			}
		}
	case "matchExpressions":
		for _, requirement := range listOf(value) {
			if key, ok := mapOf(requirement)["key"].(string); ok {
				keys.Insert(key)
			}
		}
	case "matchLabelKeys", "mismatchLabelKeys":
		for _, key := range listOf(value) {
			if key, ok := key.(string); ok {
				keys.Insert(key)
			}
		}
	}
}
