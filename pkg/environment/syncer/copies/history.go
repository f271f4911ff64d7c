// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// between is in the place of a revision when the environment has none.
const between = 0

// history is what there is of an environment.
type history struct {
	// current is the revision that was put last.
	current int64
	heads   map[int64]head
}

// with is the history after another head has been put. That between revisions goes when there is one again.
func (h history) with(revision int64, next head) history {
	after := history{revision, maps.Clone(h.heads)}
	delete(after.heads, between)
	after.heads[revision] = next
	return after
}

// revisions are those that there is something of, the lowest first.
func (h history) revisions() []int64 {
	revisions := slices.Sorted(maps.Keys(h.heads))
	return slices.DeleteFunc(revisions, func(revision int64) bool { return revision == between })
}

func (h history) equal(other history) bool {
	return h.current == other.current && maps.EqualFunc(h.heads, other.heads, maps.Equal)
}

// contents are the numbers of all that is named.
func (h history) contents() sets.Set[string] {
	named := sets.New[string]()
	for _, there := range h.heads {
		named.Insert(slices.Collect(maps.Values(there))...)
	}
	return named
}

// history returns what there is of an environment.
func (c *Copies) history(ctx context.Context, uid types.UID) (history, error) {
	there := history{heads: map[int64]head{}}
	revision, _, err := c.current(ctx, uid)
	if err != nil {
		return there, err
	}
	there.current = revision
	prefix := headsOf(uid)
	for row, err := range c.table.Scan(ctx, prefix) {
		if err != nil {
			return there, err
		}
		revision, err := strconv.ParseInt(row.Key[len(prefix):], 16, 64)
		if found := parseHead(ctx, row.Key, row.Value); err == nil && found != nil {
			there.heads[revision] = found
		}
	}
	return there, nil
}
