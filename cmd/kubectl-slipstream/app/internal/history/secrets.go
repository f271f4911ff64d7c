// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/annotation"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

// What is shown in the place of a value of a Secret.
const (
	hiddenValue  = "(hidden)"
	hiddenBefore = "(hidden, before)"
	hiddenAfter  = "(hidden, after)"
)

// hidden returns two contents of a Secret, each nil if it does not exist, without their values and without those of annotations that may
// repeat them. A value that differs is shown as one that differs, unless the values are incomparable.
func hidden(before, after *unstructured.Unstructured, incomparable bool) (a, b *unstructured.Unstructured) {
	a, b = before.DeepCopy(), after.DeepCopy()
	for _, at := range [][]string{{"data"}, {"metadata", "annotations"}} {
		was, is := mapAt(a, at), mapAt(b, at)
		for key := range was {
			if at[0] == "metadata" && annotation.IsHarmless(key) {
				continue
			}
			switch value, both := is[key]; {
			case both && !incomparable && value != was[key]:
				was[key], is[key] = hiddenBefore, hiddenAfter
			case both:
				was[key], is[key] = hiddenValue, hiddenValue
			default:
				was[key] = hiddenValue
			}
		}
		for key := range is {
			if _, both := was[key]; !both && (at[0] != "metadata" || !annotation.IsHarmless(key)) {
				is[key] = hiddenValue
			}
		}
	}
	return a, b
}

// mapAt returns the map of an object at some fields, which may be changed; nil if there is none.
func mapAt(object *unstructured.Unstructured, at []string) map[string]any {
	if object == nil {
		return nil
	}
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, at...) // Not found is no map.
	fields, _ := found.(map[string]any)
	return fields
}

// all returns all objects of a state, including masked Secrets.
func (p *past) all() map[objectKey]*unstructured.Unstructured {
	out := make(map[objectKey]*unstructured.Unstructured, len(p.objects)+len(p.masked))
	for _, objects := range []map[objectKey]*unstructured.Unstructured{p.objects, p.masked} {
		for key, object := range objects {
			out[key] = object
		}
	}
	return out
}

// named returns an object of Git by its kind and name.
func named(object *unstructured.Unstructured) restore.Object {
	return restore.Object{Kind: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}
