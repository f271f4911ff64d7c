// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Patches can change neither these fields of an object nor any of its metadata except the parts listed here.
var (
	immutableFields = []string{"apiVersion", "kind", "status"}
	mutableMetadata = []string{"labels", "annotations", "finalizers"}
)

func errImmutable(name string) error {
	return fmt.Errorf("must not change %s: patches change neither apiVersion, kind and status nor metadata other than labels, "+
		"annotations and finalizers", name)
}

// checkPart rejects a part of an object that names an immutable field.
func checkPart(part map[string]any) error {
	if len(part) == 0 {
		return errors.New("must change something: it is empty")
	}
	for _, name := range immutableFields {
		if _, ok := part[name]; ok {
			return errImmutable(name)
		}
	}
	value, ok := part["metadata"]
	if !ok {
		return nil
	}
	metadata, ok := value.(map[string]any)
	if !ok {
		return errImmutable("metadata")
	}
	for name := range metadata {
		if !slices.Contains(mutableMetadata, name) {
			return errImmutable("metadata." + name)
		}
	}
	return nil
}

// checkImmutable rejects a patched object whose immutable fields have changed, by whatever means.
func checkImmutable(before, after map[string]any) error {
	for _, name := range immutableFields {
		if !same(before, after, name) {
			return errImmutable(name)
		}
	}
	metadataBefore, _ := before["metadata"].(map[string]any)
	metadataAfter, ok := after["metadata"].(map[string]any)
	if !ok && before["metadata"] != nil {
		return errImmutable("metadata")
	}
	for _, fields := range []map[string]any{metadataBefore, metadataAfter} {
		for name := range fields {
			if !slices.Contains(mutableMetadata, name) && !same(metadataBefore, metadataAfter, name) {
				return errImmutable("metadata." + name)
			}
		}
	}
	return nil
}

func same(before, after map[string]any, name string) bool {
	was, had := before[name]
	is, has := after[name]
	return had == has && (reflect.DeepEqual(was, is) || sameText(was, is))
}

// sameText compares the JSON: a patch that is applied to JSON turns 1.0 into 1.
func sameText(was, is any) bool {
	before, err := json.Marshal(was)
	if err != nil {
		return false
	}
	after, err := json.Marshal(is)
	return err == nil && bytes.Equal(before, after)
}
