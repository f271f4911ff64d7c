// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// rowScopes is the maximum number of scopes in a row of the push log. The names in a scope are limited, so a row has less than 1 MiB.
const rowScopes = 1000

// notedComparison is what a push has compared of a destination, as the notes of pushes have it. How far each scope was compared is stored
// in rows of its own.
type notedComparison struct {
	// ID identifies the rows of the comparison. It is empty before they are written, and random, so that no other leader uses it.
	ID   string    `json:"id"`
	UID  types.UID `json:"uid"`
	Time time.Time `json:"time"`
	// listed is how far each scope was compared.
	listed map[watch.Watch]position
}

// includes reports whether every change that other supersedes is also superseded by c.
func (c *notedComparison) includes(other *notedComparison) bool {
	if c.UID != other.UID {
		return false
	}
	for scope, at := range other.listed {
		if own, ok := c.listed[scope]; !ok || !own.includes(at) {
			return false
		}
	}
	return true
}

// storedScope is how far a scope was compared, in a row.
type storedScope struct {
	Watch           watch.Watch `json:"watch"`
	ResourceVersion string      `json:"resourceVersion"`
	// Through is that of the position.
	Through string `json:"through,omitempty"`
}

// rowsOf returns the rows of a comparison. Their keys follow that of the notes of the branch.
func (p *pushLog) rowsOf(k branchKey, c *notedComparison) (rows []storetable.Row) {
	scopes := make([]storedScope, 0, len(c.listed))
	for scope, at := range c.listed {
		scopes = append(scopes, storedScope{Watch: scope, ResourceVersion: at.resourceVersion, Through: at.through})
	}
	for chunk := range slices.Chunk(scopes, rowScopes) {
		// A scope has nothing that JSON cannot express.
		value, _ := json.Marshal(chunk)
		rows = append(rows, storetable.Row{Key: fmt.Sprintf("%s/%s/%d", p.key(k), c.ID, len(rows)), Value: value})
	}
	return rows
}

// decodeScopes adds the scopes in a row to those of its comparison, and returns the comparison's ID.
func decodeScopes(row storetable.Row, listed map[string]map[watch.Watch]position) (id string, err error) {
	id, _, _ = strings.Cut(strings.TrimPrefix(row.Key, notesKey(row.Key)+"/"), "/")
	var scopes []storedScope
	if err := json.Unmarshal(row.Value, &scopes); err != nil {
		return "", fmt.Errorf("decode what a push has compared: %w", err)
	}
	if listed[id] == nil {
		listed[id] = map[watch.Watch]position{}
	}
	for _, scope := range scopes {
		listed[id][scope.Watch] = position{resourceVersion: scope.ResourceVersion, through: scope.Through}
	}
	return id, nil
}
