// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitindex

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/store/table"
)

// TableName is the name of the table of the work store that the index is stored in.
const TableName = "commits"

const (
	scopeKey      = "scope"
	pushesPrefix  = "pushes/"
	objectsPrefix = "objects/"
	// rowEntries is the number of prepared entries in one row.
	rowEntries = 50
)

// pushRow is the stored form of some entries of a push.
type pushRow struct {
	// At is the time at which the entries were prepared.
	At      time.Time `json:"at"`
	Entries []Entry   `json:"entries"`
}

// objectRow is the stored form of a recorded entry.
type objectRow struct {
	// At is the time at which the entry was recorded.
	At    time.Time `json:"at"`
	Entry Entry     `json:"entry"`
}

func pushPrefix(tip string) string { return pushesPrefix + tip + "/" }

func objectPrefix(o Object) string {
	return objectsPrefix + strings.Join([]string{o.Namespace, o.Group, o.Resource, o.Name}, "/") + "/"
}

// pushRows returns the rows of a push.
func pushRows(tip string, entries []Entry, now time.Time) []table.Row {
	var rows []table.Row
	for chunk := range slices.Chunk(entries, rowEntries) {
		row := pushRow{At: now}
		for _, entry := range chunk {
			row.Entries = append(row.Entries, entry.bounded())
		}
		rows = append(rows, encode(fmt.Sprintf("%s%06d", pushPrefix(tip), len(rows)), row))
	}
	return rows
}

// objectRows returns the rows of recorded entries. The same entry always has the same key.
func objectRows(entries []Entry, now time.Time) []table.Row {
	rows := make([]table.Row, len(entries))
	for i, entry := range entries {
		commit := entry.Commit
		rows[i] = encode(objectPrefix(entry.Object)+commit.Destination.String()+"/"+commit.SHA, objectRow{now, entry})
	}
	return rows
}

func encode(key string, value any) table.Row {
	// All stored forms can be expressed in JSON.
	encoded, _ := json.Marshal(value)
	return table.Row{Key: key, Value: encoded}
}

func decode[T any](row table.Row) (T, error) {
	var value T
	if err := json.Unmarshal(row.Value, &value); err != nil {
		return *new(T), fmt.Errorf("decode row %s: %w", row.Key, err)
	}
	return value, nil
}
