// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// maxPart is the maximum size in bytes of a part of a content. Each part is a row, and the store accepts 1.5 MiB in a request. The JSON of
// an object can be larger than the object in the cluster, because the API server stores many kinds in a shorter form.
const maxPart = 1 << 20

// encoder encodes objects. It uses its memory again for the next one.
type encoder struct {
	plain  bytes.Buffer
	packed []byte
}

// encode returns the content of an object: its JSON, compressed. The result is valid until the next call.
func (e *encoder) encode(object *unstructured.Unstructured) ([]byte, error) {
	e.plain.Reset()
	to := json.NewEncoder(&e.plain)
	to.SetEscapeHTML(false) // Otherwise each <, > and & takes six bytes.
	if err := to.Encode(object.Object); err != nil {
		return nil, fmt.Errorf("encode it: %w", err)
	}
	e.packed = s2.Encode(e.packed[:cap(e.packed)], e.plain.Bytes())
	return e.packed, nil
}

func decode(content []byte) (*unstructured.Unstructured, error) {
	plain, err := s2.Decode(nil, content)
	object := &unstructured.Unstructured{}
	if err != nil || utiljson.Unmarshal(plain, &object.Object) != nil {
		return nil, errUnreadable
	}
	return object, nil
}

// content returns the content whose parts have these numbers, nil if one of them was deleted.
func (c *Copies) content(ctx context.Context, uid types.UID, numbers []string) ([]byte, error) {
	parts := make([][]byte, len(numbers))
	for i, number := range numbers {
		part, found, err := c.table.Get(ctx, contentsOf(uid)+number)
		if err != nil || !found {
			return nil, err
		}
		parts[i] = part
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return slices.Concat(parts...), nil
}

// object returns the object with a content, nil if a part of it was deleted.
func (c *Copies) object(ctx context.Context, uid types.UID, numbers []string) (*unstructured.Unstructured, error) {
	content, err := c.content(ctx, uid, numbers)
	if err != nil || content == nil {
		return nil, err
	}
	return decode(content)
}
