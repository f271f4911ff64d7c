// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/store/table"
)

// head has the numbers of the parts of each object's content, in order.
type head map[Key][]string

// entry is the stored form of an object in a head.
type entry struct {
	Group   string   `json:"group,omitempty"`
	Kind    string   `json:"kind"`
	Name    string   `json:"name"`
	Content []string `json:"content"`
}

// errUnreadable has no details, because the errors of the JSON library quote the input, which may be secret.
var errUnreadable = errors.New("the row is damaged")

func numbered(revision int64) string { return fmt.Sprintf("%016x", revision) }

func environmentRow(uid types.UID) string { return "environment/" + string(uid) }
func currentRow(uid types.UID) string     { return "current/" + string(uid) }
func headsOf(uid types.UID) string        { return "head/" + string(uid) + "/" }
func contentsOf(uid types.UID) string     { return "content/" + string(uid) + "/" }

func (h head) equal(other head) bool { return maps.EqualFunc(h, other, slices.Equal[[]string]) }

func (h head) sorted() []Key {
	return slices.SortedFunc(maps.Keys(h), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

func (h head) row(uid types.UID, revision int64) (table.Row, error) {
	entries := make([]entry, 0, len(h))
	for _, key := range h.sorted() {
		entries = append(entries, entry{key.Group, key.Kind, key.Name, h[key]})
	}
	value, err := json.Marshal(entries)
	if err != nil {
		return table.Row{}, fmt.Errorf("encode revision %d: %w", revision, err)
	}
	return table.Row{Key: headsOf(uid) + numbered(revision), Value: value}, nil
}

// parseHead returns nil for a head that cannot be read. Its revision is then treated as if it had never been put.
func parseHead(ctx context.Context, row string, value []byte) head {
	var entries []entry
	if err := json.Unmarshal(value, &entries); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read the applied objects of an environment, treating the revision as not stored", "row", row)
		return nil
	}
	h := make(head, len(entries))
	for _, e := range entries {
		h[Key{schema.GroupKind{Group: e.Group, Kind: e.Kind}, e.Name}] = e.Content
	}
	return h
}

// current returns the revision that was put last and its head, nil if there is none.
func (c *Copies) current(ctx context.Context, uid types.UID) (int64, head, error) {
	value, found, err := c.table.Get(ctx, currentRow(uid))
	if err != nil || !found {
		return 0, nil, err
	}
	revision, err := strconv.ParseInt(string(value), 16, 64)
	if err != nil {
		return 0, nil, errUnreadable
	}
	h, err := c.head(ctx, uid, revision)
	return revision, h, err
}

// head returns the head of a revision, nil if there is none.
func (c *Copies) head(ctx context.Context, uid types.UID, revision int64) (head, error) {
	row := headsOf(uid) + numbered(revision)
	value, found, err := c.table.Get(ctx, row)
	if err != nil || !found {
		return nil, err
	}
	return parseHead(ctx, row, value), nil
}
