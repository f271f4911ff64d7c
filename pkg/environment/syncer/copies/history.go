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

// between is stored instead of a revision if the environment has none.
const between = 0

// history are the stored heads of an environment.
type history struct {
	// current is the revision that was put last.
	current int64
	heads   map[int64]head
}

// with returns the history after another head has been put. It removes the head between revisions if there is a revision again.
func (h history) with(revision int64, next head) history {
	after := history{revision, maps.Clone(h.heads)}
	delete(after.heads, between)
	after.heads[revision] = next
	return after
}

// revisions returns the stored revisions, the lowest first.
func (h history) revisions() []int64 {
	revisions := slices.Sorted(maps.Keys(h.heads))
	return slices.DeleteFunc(revisions, func(revision int64) bool { return revision == between })
}

func (h history) equal(other history) bool {
	return h.current == other.current && maps.EqualFunc(h.heads, other.heads, head.equal)
}

// contents returns the numbers of all parts of contents that heads name.
func (h history) contents() sets.Set[string] {
	named := sets.New[string]()
	for _, applied := range h.heads {
		for _, numbers := range applied {
			named.Insert(numbers...)
		}
	}
	return named
}

// history returns the stored heads of an environment.
func (c *Copies) history(ctx context.Context, uid types.UID) (history, error) {
	stored := history{heads: map[int64]head{}}
	revision, _, err := c.current(ctx, uid)
	if err != nil {
		return stored, err
	}
	stored.current = revision
	prefix := headsOf(uid)
	for row, err := range c.table.Scan(ctx, prefix) {
		if err != nil {
			return stored, err
		}
		revision, err := strconv.ParseInt(row.Key[len(prefix):], 16, 64)
		if found := parseHead(ctx, row.Key, row.Value); err == nil && found != nil {
			stored.heads[revision] = found
		}
	}
	return stored, nil
}
