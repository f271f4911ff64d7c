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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/store/table"
)

// head says where the content of objects is, by its number.
type head map[Key]string

// entry is an object of a head as it is written.
type entry struct {
	Group   string `json:"group,omitempty"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

// errUnreadable says no more: the library's errors quote what they read, which may be secret.
var errUnreadable = errors.New("the row is not what was written")

func numbered(revision int64) string { return fmt.Sprintf("%016x", revision) }

func environmentRow(uid types.UID) string { return "environment/" + string(uid) }
func currentRow(uid types.UID) string     { return "current/" + string(uid) }
func headsOf(uid types.UID) string        { return "head/" + string(uid) + "/" }
func contentsOf(uid types.UID) string     { return "content/" + string(uid) + "/" }

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

// parseHead returns nil for a head that cannot be read: its revision is as if it had never been put, and all else goes on.
func parseHead(ctx context.Context, row string, value []byte) head {
	var entries []entry
	if err := json.Unmarshal(value, &entries); err != nil {
		klog.FromContext(ctx).Error(err, "What was applied in an environment cannot be read", "row", row)
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
	value, there, err := c.table.Get(ctx, currentRow(uid))
	if err != nil || !there {
		return 0, nil, err
	}
	revision, err := strconv.ParseInt(string(value), 16, 64)
	if err != nil {
		return 0, nil, errUnreadable
	}
	h, err := c.head(ctx, uid, revision)
	return revision, h, err
}

// head returns that of a revision, nil if there is none.
func (c *Copies) head(ctx context.Context, uid types.UID, revision int64) (head, error) {
	row := headsOf(uid) + numbered(revision)
	value, there, err := c.table.Get(ctx, row)
	if err != nil || !there {
		return nil, err
	}
	return parseHead(ctx, row, value), nil
}

// object returns the content of a number, nil if it is gone.
func (c *Copies) object(ctx context.Context, uid types.UID, number string) (*unstructured.Unstructured, error) {
	value, there, err := c.table.Get(ctx, contentsOf(uid)+number)
	if err != nil || !there {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if utiljson.Unmarshal(value, &object.Object) != nil {
		return nil, errUnreadable
	}
	return object, nil
}
