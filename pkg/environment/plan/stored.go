// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// stored returns an object as an API server writes it: quantities and times in their one form, without fields that say
// nothing, such as an empty list. What patches have put in may be written otherwise, and would differ from what is there
// for ever. An object that is not of the shape of its type is returned as it is; servers refuse it by name.
func stored(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.DeepCopy()
	encodeSecret(out)
	withoutRepeats(out.Object["spec"])
	typed, err := scheme.Scheme.New(out.GroupVersionKind())
	if err != nil {
		return out
	}
	// A field that is not known here is kept, and so is all that looks empty beside it.
	strict := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(out.Object, typed, true)
	if strict != nil && !runtime.IsStrictDecodingError(strict) {
		return out
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return out
	}
	out.Object = rewritten(out.Object, written, strict == nil)
	return out
}

// encodeSecret moves what a Secret has as text to where servers keep it.
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

// rewritten returns fields as they are written, less those that are not, if that is known of all. Nothing is written as null.
func rewritten(fields, written map[string]any, complete bool) map[string]any {
	out := make(map[string]any, len(fields))
	for name, value := range fields {
		as, ok := written[name]
		switch {
		case value == nil:
		case ok:
			out[name] = rewrittenValue(value, as, complete)
		case !complete:
			out[name] = value
		}
	}
	return out
}

func rewrittenValue(value, written any, complete bool) any {
	switch value := value.(type) {
	case map[string]any:
		if as, ok := written.(map[string]any); ok {
			return rewritten(value, as, complete)
		}
		return value
	case []any:
		as, ok := written.([]any)
		if !ok || len(as) != len(value) {
			return value
		}
		out := make([]any, len(value))
		for i := range value {
			out[i] = rewrittenValue(value[i], as[i], complete)
		}
		return out
	}
	if written == nil {
		return value
	}
	return written
}
