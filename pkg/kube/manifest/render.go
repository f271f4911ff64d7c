// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Render returns the canonical YAML of an object: one document, LF line ends, a final newline.
//
// Render does not change the object, which must not be changed concurrently. Render fails on an object without
// apiVersion or kind, and on values that JSON cannot represent: strings that are not UTF-8, infinite numbers, and Go
// types that unstructured objects do not hold.
func Render(obj *unstructured.Unstructured) ([]byte, error) {
	if err := checkTyped(obj); err != nil {
		return nil, err
	}
	content, err := encode(withoutRuntime(obj.Object))
	if err != nil {
		return nil, fmt.Errorf("rendering %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return content, nil
}

// Canonical returns the object that Render writes. It shares values with the given object and is read-only. It fails on
// an object without apiVersion or kind.
func Canonical(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := checkTyped(obj); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: withoutRuntime(obj.Object)}, nil
}

func checkTyped(obj *unstructured.Unstructured) error {
	if obj == nil || textAt(obj.Object, "apiVersion") == "" || textAt(obj.Object, "kind") == "" {
		return errors.New("rendering object: apiVersion and kind are required")
	}
	return nil
}
