// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// normalized returns an object as an API server stores it: canonical quantities and times, and no empty fields. Patches may
// write them differently, which would be a permanent difference to the live object. An object that does not match its
// schema is returned unchanged; the API server rejects it.
func normalized(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.DeepCopy()
	encodeSecret(out)
	dropDuplicates(out.Object["spec"])
	typed, err := scheme.Scheme.New(out.GroupVersionKind())
	if err != nil {
		return out
	}
	// Unknown fields are kept, and so are empty fields beside them.
	strict := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(out.Object, typed, true)
	if strict != nil && !runtime.IsStrictDecodingError(strict) {
		return out
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return out
	}
	out.Object = normalizeFields(out.Object, written, strict == nil)
	return out
}

// encodeSecret moves stringData of a Secret to data.
func encodeSecret(object *unstructured.Unstructured) {
	texts, ok, err := unstructured.NestedStringMap(object.Object, "stringData")
	if object.GroupVersionKind().GroupKind().String() != "Secret" || !ok || err != nil {
		return
	}
	data, _ := object.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	object.Object["data"] = data
	delete(object.Object, "stringData")
}

// normalizeFields returns the fields with their normalized values. Fields that normalization drops are dropped only if the
// schema is complete. Null values are always dropped.
func normalizeFields(fields, written map[string]any, complete bool) map[string]any {
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		as, ok := written[name]
		switch {
		case value == nil:
		case ok:
			out[name] = normalizeValue(value, as, complete)
		case !complete:
			out[name] = value
		}
	}
	return out
}

func normalizeValue(value, written any, complete bool) any {
	switch value := value.(type) {
	case map[string]any:
		if as, ok := written.(map[string]any); ok {
			return normalizeFields(value, as, complete)
		}
		return value
	case []any:
		as, ok := written.([]any)
		if !ok || len(as) != len(value) {
			return value
		}
		out := make([]any, len(value))
		for i := range value {
			out[i] = normalizeValue(value[i], as[i], complete)
		}
		return out
	}
	if written == nil {
		return value
	}
	return written
}

// listKeys are the lists of Pods in which API servers accept duplicates, with the fields that identify an item. Server-side
// apply accepts none. Other lists have the same names, for example the ports of Services: their items lack the first field
// and are kept.
var listKeys = map[string][]string{
	"env": {"name"}, "ports": {"containerPort", "protocol"}, "imagePullSecrets": {"name"}, "hostAliases": {"ip"},
}

// dropDuplicates removes duplicate items in place and keeps the last one, which is effective for environment variables.
func dropDuplicates(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if items, ok := inner.([]any); ok && listKeys[name] != nil {
				value[name] = keepLast(items, listKeys[name])
			}
			dropDuplicates(inner)
		}
	case []any:
		for _, item := range value {
			dropDuplicates(item)
		}
	}
}

func keepLast(items []any, keys []string) []any {
	later := map[string]int{}
	for i, item := range items {
		later[itemKey(item, keys)] = i
	}
	kept := make([]any, 0, len(items))
	for i, item := range items {
		if fields, _ := item.(map[string]any); fields[keys[0]] == nil || later[itemKey(item, keys)] == i {
			kept = append(kept, item)
		}
	}
	return kept
}

// itemKey returns the identity of an item. The default protocol of a port is TCP.
func itemKey(item any, keys []string) string {
	fields, _ := item.(map[string]any)
	text := ""
	for _, key := range keys {
		value := fields[key]
		if key == "protocol" && value == nil {
			value = "TCP"
		}
		text += fmt.Sprintf("%v\n", value)
	}
	return text
}
