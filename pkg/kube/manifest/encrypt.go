// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Encrypter replaces the values of a file while it is rendered.
type Encrypter interface {
	// Value returns the replacement for a string, a number or a boolean. It is called for each of them in the order of
	// the file. The path holds the keys that lead to the value; a list item has the path of its list.
	Value(path []string, value any) (any, error)
	// Fields returns fields to append after those of the object. It is called last.
	Fields() (map[string]any, error)
}

// RenderEncrypted renders like Render, with the values replaced by the encrypter and with its fields appended. It fails
// if the object has a field of the same name.
func RenderEncrypted(obj *unstructured.Unstructured, encrypter Encrypter) ([]byte, error) {
	if err := checkTyped(obj); err != nil {
		return nil, err
	}
	content, err := renderEncrypted(withoutRuntime(obj.Object), encrypter)
	if err != nil {
		return nil, fmt.Errorf("encrypting %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return content, nil
}

func renderEncrypted(object map[string]any, encrypter Encrypter) ([]byte, error) {
	encrypted, err := encryptMapping(object, nil, rootOrder, encrypter)
	if err != nil {
		return nil, err
	}
	content, err := encode(encrypted)
	if err != nil {
		return nil, err
	}
	fields, err := encrypter.Fields()
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

func encryptMapping(fields map[string]any, path, first []string, encrypter Encrypter) (map[string]any, error) {
	encrypted := make(map[string]any, len(fields))
	for _, key := range appendKeys(nil, fields, first) {
		value, err := encryptValue(fields[key], append(slices.Clip(path), key), encrypter)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		encrypted[key] = value
	}
	return encrypted, nil
}

func encryptValue(value any, path []string, encrypter Encrypter) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		return encryptMapping(value, path, orderOf(path[len(path)-1], len(path) == 1), encrypter)
	case []any:
		return encryptSequence(value, path, encrypter)
	case nil:
		return nil, nil //nolint:nilnil // null is a value
	}
	return encrypter.Value(path, value)
}

func encryptSequence(items []any, path []string, encrypter Encrypter) ([]any, error) {
	encrypted := make([]any, len(items))
	for i, item := range items {
		var err error
		if fields, ok := item.(map[string]any); ok {
			encrypted[i], err = encryptMapping(fields, path, nil, encrypter)
		} else {
			encrypted[i], err = encryptValue(item, path, encrypter)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
	}
	return encrypted, nil
}
