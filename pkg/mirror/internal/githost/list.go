// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxItems bounds the items of a list in one response. The shortest item has two bytes, but takes a hundred times as much memory. Hosts
// send up to 100, and lists of comments without pages several thousand.
const maxItems = 10_000

// list is a list in a response.
type list[T any] []T

// UnmarshalJSON decodes up to maxItems items, and fails before it allocates more.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	start, err := decoder.Token()
	if err != nil {
		return fmt.Errorf("read a list: %w", err)
	}
	switch start {
	case nil:
		*l = nil
		return nil
	case json.Delim('['):
	default:
		return fmt.Errorf("read a list: it begins with %v", start)
	}
	*l = list[T]{}
	for decoder.More() {
		if len(*l) == maxItems {
			return fmt.Errorf("read a list: it has more than %d items", maxItems)
		}
		var item T
		if err := decoder.Decode(&item); err != nil {
			return fmt.Errorf("read item %d of a list: %w", len(*l)+1, err)
		}
		*l = append(*l, item)
	}
	return nil
}
