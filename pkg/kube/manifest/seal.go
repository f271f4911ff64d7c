// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Seal replaces values of a file on their way into it.
type Seal interface {
	// Value returns what stands in the place of a string, a number or a truth value. It is called for each, in the
	// order of the file. The path are the keys that lead to the value; an item of a list has the path of its list.
	Value(path []string, value any) (any, error)
	// Fields returns fields that stand after those of the object. It is called last.
	Fields() (map[string]any, error)
}

// RenderSealed is Render with the values replaced that a seal replaces, and with its fields at the end. It fails where
// the object has a field of the same name.
func RenderSealed(obj *unstructured.Unstructured, seal Seal) ([]byte, error) {
	if err := checkTyped(obj); err != nil {
		return nil, err
	}
	content, err := renderSealed(withoutRuntime(obj.Object), seal)
	if err != nil {
		return nil, fmt.Errorf("sealing %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return content, nil
}

func renderSealed(object map[string]any, seal Seal) ([]byte, error) {
	sealed, err := sealMapping(object, nil, rootOrder, seal)
	if err != nil {
		return nil, err
	}
	content, err := encode(sealed)
	if err != nil {
		return nil, err
	}
	fields, err := seal.Fields()
	if err != nil {
		return nil, err
	}
	for field := range fields {
		if _, taken := object[field]; taken {
			return nil, fmt.Errorf("the object has a field %s of its own", field)
		}
	}
	more, err := encode(fields)
	return append(content, more...), err
}

func sealMapping(fields map[string]any, path, first []string, seal Seal) (map[string]any, error) {
	sealed := make(map[string]any, len(fields))
	for _, key := range appendKeys(nil, fields, first) {
		value, err := sealValue(fields[key], append(slices.Clip(path), key), seal)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		sealed[key] = value
	}
	return sealed, nil
}

func sealValue(value any, path []string, seal Seal) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		return sealMapping(value, path, orderOf(path[len(path)-1], len(path) == 1), seal)
	case []any:
		return sealSequence(value, path, seal)
	case nil:
		return nil, nil //nolint:nilnil // null is a value
	}
	return seal.Value(path, value)
}

func sealSequence(items []any, path []string, seal Seal) ([]any, error) {
	sealed := make([]any, len(items))
	for i, item := range items {
		var err error
		if fields, ok := item.(map[string]any); ok {
			sealed[i], err = sealMapping(fields, path, nil, seal)
		} else {
			sealed[i], err = sealValue(item, path, seal)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return sealed, nil
}
