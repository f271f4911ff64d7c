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

// The fields of an object that patches cannot change, and the parts of its metadata that they can.
var (
	keptFields         = []string{"apiVersion", "kind", "status"}
	changeableMetadata = []string{"labels", "annotations", "finalizers"}
)

func errKept(name string) error {
	return fmt.Errorf("must not change %s: patches change neither apiVersion, kind and status nor metadata other than labels, "+
		"annotations and finalizers", name)
}

// checkPart refuses a part of an object that names what it cannot change.
func checkPart(part map[string]any) error {
	if len(part) == 0 {
		return errors.New("must change something: it is empty")
	}
	for _, name := range keptFields {
		if _, ok := part[name]; ok {
			return errKept(name)
		}
	}
	value, ok := part["metadata"]
	if !ok {
		return nil
	}
	metadata, ok := value.(map[string]any)
	if !ok {
		return errKept("metadata")
	}
	for name := range metadata {
		if !slices.Contains(changeableMetadata, name) {
			return errKept("metadata." + name)
		}
	}
	return nil
}

// checkKept is the last word on what an object has become, whatever way a patch has found.
func checkKept(before, after map[string]any) error {
	for _, name := range keptFields {
		if !same(before, after, name) {
			return errKept(name)
		}
	}
	metadataBefore, _ := before["metadata"].(map[string]any)
	metadataAfter, ok := after["metadata"].(map[string]any)
	if !ok && before["metadata"] != nil {
		return errKept("metadata")
	}
	for _, fields := range []map[string]any{metadataBefore, metadataAfter} {
		for name := range fields {
			if !slices.Contains(changeableMetadata, name) && !same(metadataBefore, metadataAfter, name) {
				return errKept("metadata." + name)
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

// sameText compares what is written: a patch that goes through JSON makes 1 of 1.0.
func sameText(was, is any) bool {
	before, err := json.Marshal(was)
	if err != nil {
		return false
	}
	after, err := json.Marshal(is)
	return err == nil && bytes.Equal(before, after)
}
