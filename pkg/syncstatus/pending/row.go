// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/store/table"
)

// headRow is the stored form of a batch.
type headRow struct {
	ID         string    `json:"id,omitempty"`
	Resync     bool      `json:"resync,omitempty"`
	Overflowed bool      `json:"overflowed,omitempty"`
	First      time.Time `json:"first"`
}

// changeRow is the stored form of a change.
type changeRow struct {
	UID             types.UID      `json:"uid,omitempty"`
	ResourceVersion string         `json:"resourceVersion,omitempty"`
	Removed         bool           `json:"removed,omitempty"`
	FirstVersion    string         `json:"firstResourceVersion,omitempty"`
	First           time.Time      `json:"first"`
	Last            time.Time      `json:"last"`
	Events          int            `json:"events"`
	Authors         []Contribution `json:"authors,omitempty"`
}

func (b *batch) key() string { return fmt.Sprintf("%s/%016x", b.namespace, b.number) }

// The rows of a batch are those from its key up to rowsEnd, exclusive. Those of its changes start at changesStart.
func (b *batch) changesStart() string { return b.key() + "/" }
func (b *batch) rowsEnd() string      { return b.key() + "0" }

func (b *batch) encodeHead() table.Row {
	// All fields of both forms can be expressed in JSON.
	value, _ := json.Marshal(headRow{b.id, b.resync, b.overflowed, b.first})
	return table.Row{Key: b.key(), Value: value}
}

func (b *batch) encodeChange(c *Change) table.Row {
	value, _ := json.Marshal(changeRow{c.UID, c.ResourceVersion, c.Removed, c.FirstResourceVersion, c.First, c.Last, c.Events, c.Authors})
	return table.Row{Key: b.changesStart() + c.Group + "/" + c.Kind + "/" + c.Name, Value: value}
}

// rowKey is the parsed key of a row.
type rowKey struct {
	namespace string
	number    uint64
	// object is nil for the row of a batch.
	object *Object
}

// Numbers of the parts of the keys of batches and of changes.
const (
	headParts   = 2
	changeParts = 5
)

func parseKey(key string) (rowKey, error) {
	parts := strings.Split(key, "/")
	p := rowKey{namespace: parts[0]}
	if len(parts) != headParts && len(parts) != changeParts {
		return p, fmt.Errorf("its key has %d parts", len(parts))
	}
	number, err := strconv.ParseUint(parts[1], 16, 64)
	if err != nil {
		return p, fmt.Errorf("its key has no batch number: %w", err)
	}
	p.number = number
	if len(parts) == changeParts {
		p.object = &Object{GroupKind: schema.GroupKind{Group: parts[2], Kind: parts[3]}, Namespace: parts[0], Name: parts[4]}
	}
	return p, nil
}

// restore adds a stored row to its batch.
func (b *batch) restore(object *Object, value []byte) error {
	if object == nil {
		var head headRow
		if err := json.Unmarshal(value, &head); err != nil {
			return fmt.Errorf("decode it: %w", err)
		}
		b.id, b.resync, b.overflowed, b.first = head.ID, head.Resync, head.Overflowed, head.First
		return nil
	}
	var row changeRow
	if err := json.Unmarshal(value, &row); err != nil {
		return fmt.Errorf("decode it: %w", err)
	}
	b.changes[*object] = &Change{
		*object, row.UID, row.ResourceVersion, row.Removed, row.FirstVersion, row.First, row.Last, row.Events, row.Authors,
	}
	return nil
}
