// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// Updated returns a copy of a live object with another content. Fields of the canonical form that the content does not have
// are removed. What the canonical form leaves out stays as in live: the status, allocated addresses, metadata that the API
// server maintains.
func Updated(live, content *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	now, err := manifest.Canonical(live)
	if err != nil {
		return nil, err
	}
	out := (&unstructured.Unstructured{Object: fields(live.Object, now.Object, content.Object, true)}).DeepCopy()
	if out.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Service") {
		setFamilyPolicy(out, live)
	}
	return out, nil
}

// setFamilyPolicy sets the default policy of the addresses of a Service, which is no content, if it has another one. The API server
// keeps that one if none is written.
func setFamilyPolicy(out, live *unstructured.Unstructured) {
	spec, _ := out.Object["spec"].(map[string]any)
	_, had, _ := unstructured.NestedString(live.Object, "spec", "ipFamilyPolicy")
	if spec != nil && had && spec["ipFamilyPolicy"] == nil && spec["type"] != string(corev1.ServiceTypeExternalName) {
		spec["ipFamilyPolicy"] = string(corev1.IPFamilyPolicySingleStack)
	}
}

// fields returns the fields of content, and those of live that its canonical form now does not have. If atRoot is set, they are
// the fields of an object.
func fields(live, now, content map[string]any, atRoot bool) map[string]any {
	out := make(map[string]any, len(live))
	for name, value := range content {
		if _, exists := live[name]; !exists {
			out[name] = value
		}
	}
	for name, value := range live {
		inner, isContent := now[name]
		wanted, isWanted := content[name]
		switch {
		case !isContent && !isWanted:
			out[name] = value
		case isWanted && (isContent || !isList(value) || slices.Contains(keptInPart, name)):
			out[name] = replaced(value, inner, wanted)
		case isWanted: // A list that was allocated or filled in, such as the rules of a ClusterRole that was aggregated.
			out[name] = wanted
		// A spec without its other fields would not be valid.
		case !atRoot || name != "spec":
			if left := replaced(value, inner, emptyLike(value)); !isEmpty(left) {
				out[name] = left
			}
		}
	}
	return out
}

// keptInPart are the lists of which the canonical form leaves out some items. These stay. It leaves out other lists as a whole.
var keptInPart = []string{"finalizers", "secrets"}

func isList(value any) bool {
	_, ok := value.([]any)
	return ok
}

// replaced returns the value of a field that exists in live and in content.
func replaced(live, now, content any) any {
	if reflect.DeepEqual(now, content) {
		return live
	}
	switch wanted := content.(type) {
	case map[string]any:
		if has, ok := live.(map[string]any); ok {
			inner, _ := now.(map[string]any)
			return fields(has, inner, wanted, false)
		}
	case []any:
		if has, ok := live.([]any); ok {
			inner, _ := now.([]any)
			return items(has, inner, wanted)
		}
	}
	return content
}

// items returns the items of content with what the canonical form leaves out: either whole items, or fields of items.
func items(live, now, content []any) []any {
	out := slices.Clone(content)
	if len(live) != len(now) {
		left := slices.Clone(now)
		for _, item := range live {
			if i := indexOf(left, item); i >= 0 {
				left = slices.Delete(left, i, i+1)
			} else {
				out = append(out, item)
			}
		}
		return out
	}
	taken := make([]bool, len(now))
	for i, item := range content {
		if at := counterpart(now, item, taken); at >= 0 {
			taken[at] = true
			out[i] = replaced(live[at], now[at], item)
		}
	}
	return out
}

func indexOf(items []any, item any) int {
	return slices.IndexFunc(items, func(other any) bool { return reflect.DeepEqual(other, item) })
}

// counterpart returns the index of the item of now that a wanted item replaces, -1 if there is none.
func counterpart(now []any, wanted any, taken []bool) int {
	for _, same := range []func(a, b any) bool{reflect.DeepEqual, haveSame("name"), haveSame("port", "protocol")} {
		for i, item := range now {
			if !taken[i] && same(item, wanted) {
				return i
			}
		}
	}
	return -1
}

// haveSame returns a function that reports whether two items have the same values in some fields.
func haveSame(names ...string) func(a, b any) bool {
	return func(a, b any) bool {
		first, ok := a.(map[string]any)
		second, also := b.(map[string]any)
		return ok && also && !slices.ContainsFunc(names, func(name string) bool {
			return first[name] == nil || !reflect.DeepEqual(first[name], second[name])
		})
	}
}

// emptyLike returns an empty map or list for one that is not empty, and nil for any other value.
func emptyLike(value any) any {
	switch value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return nil
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil
}
