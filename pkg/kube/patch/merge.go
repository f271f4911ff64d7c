// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

var errNotAPart = errors.New("must be a part of an object, such as {spec: {replicas: 1}}")

// merge is a JSON merge patch.
type merge []byte

var _ change = merge{}

func readMerge(document any) (change, error) {
	part, ok := document.(map[string]any)
	if !ok {
		return nil, errNotAPart
	}
	if err := checkPart(part); err != nil {
		return nil, err
	}
	text, err := json.Marshal(part)
	return merge(text), err
}

func (m merge) apply(object *unstructured.Unstructured, done *byteCount) (map[string]any, error) {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("write the object as JSON: %w", err)
	}
	if text, err = jsonpatch.MergePatch(text, m); err != nil {
		return nil, err
	}
	if err := done.add(text); err != nil {
		return nil, err
	}
	return decode(text)
}

func decode(text []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("read what the object has become: %w", err)
	}
	return object, nil
}
