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

// TableName is that of the table of the work store that a log is kept in.
const TableName = "landings"

const (
	interestKey   = "interest"
	pushesPrefix  = "pushes/"
	objectsPrefix = "objects/"
	// rowLandings is how many landings of a push are in one row.
	rowLandings = 50
)

// pushRow is the stored form of some landings of a push.
type pushRow struct {
	// At is when the push was about to be made.
	At       time.Time `json:"at"`
	Landings []Landing `json:"landings"`
}

// objectRow is the stored form of what has landed.
type objectRow struct {
	// At is when that was noted.
	At      time.Time `json:"at"`
	Landing Landing   `json:"landing"`
}

func pushPrefix(tip string) string { return pushesPrefix + tip + "/" }

func objectPrefix(o Object) string {
	return objectsPrefix + strings.Join([]string{o.Namespace, o.Group, o.Resource, o.Name}, "/") + "/"
}

// pushRows are the rows of a push.
func pushRows(tip string, landings []Landing, now time.Time) []table.Row {
	var rows []table.Row
	for some := range slices.Chunk(landings, rowLandings) {
		row := pushRow{At: now}
		for _, landing := range some {
			row.Landings = append(row.Landings, landing.kept())
		}
		rows = append(rows, encode(fmt.Sprintf("%s%06d", pushPrefix(tip), len(rows)), row))
	}
	return rows
}

// objectRows are the rows of what has landed. The same landing has the same key each time.
func objectRows(landings []Landing, now time.Time) []table.Row {
	rows := make([]table.Row, len(landings))
	for i, landing := range landings {
		commit := landing.Commit
		rows[i] = encode(objectPrefix(landing.Object)+commit.Destination.String()+"/"+commit.SHA, objectRow{now, landing})
	}
	return rows
}

func encode(key string, value any) table.Row {
	// No form has anything that JSON cannot express.
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
