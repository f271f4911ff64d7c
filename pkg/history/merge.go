// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"container/heap"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// leastAhead and mostAhead bound the number of keys of a namespace that are read at first, and moreAhead is how many are read when those
	// are used up.
	leastAhead, mostAhead, moreAhead = 4, 512, 32
	// gapKeys is how many keys are read at once where no namespaces are known.
	gapKeys = 4096
)

// merger reads the keys of Changes in the order of lists. Within a namespace, the table has them in this order; merger merges those of all
// namespaces. A page costs two short reads for each namespace with Changes, however many Changes there are, and needs no index. If the user may see
// few of them, it reads on, and each key once.
type merger struct {
	changes *table.Table

	mu sync.Mutex
	// known are the namespaces that had Changes when they were last read, in the order of their keys. They only save time: what is between
	// them is read, too.
	known []string
}

// positions visits the positions after another one, in order: of a namespace, or of all if it is empty. About as many as
// expected will be visited; more if the user may not see some of them, and 0 is unknown. A Change that exists throughout is visited once, one
// that is created or deleted meanwhile may be visited or not.
func (m *merger) positions(ctx context.Context, namespace string, after position, expected int) iter.Seq2[position, error] {
	return func(yield func(position, error) bool) {
		merged, err := m.runs(ctx, namespace, after, expected)
		if err != nil {
			yield(position{}, err)
			return
		}
		heap.Init(&merged)
		for len(merged) > 0 {
			first := merged[0]
			if !yield(first.first(), nil) {
				return
			}
			if err := first.advance(ctx, m.changes); err != nil {
				yield(position{}, err)
				return
			}
			if len(first.keys) == 0 {
				heap.Pop(&merged)
			} else {
				heap.Fix(&merged, 0)
			}
		}
	}
}

// runs returns the runs of the namespaces that have Changes after a position.
func (m *merger) runs(ctx context.Context, namespace string, after position, expected int) (found runs, err error) {
	pieces := []piece{pieceOf(namespace, after, expected)}
	if namespace == "" {
		pieces = m.pieces(after, expected)
	}
	namespaces := map[string]struct{}{}
	for len(pieces) > 0 {
		spans := make([]table.Span, len(pieces))
		for i := range pieces {
			spans[i] = pieces[i].Span
		}
		keys, err := m.changes.FirstKeys(ctx, spans...)
		if err != nil {
			return nil, err
		}
		var next []piece
		for i, of := range pieces {
			switch {
			case of.namespace == "":
				next = append(next, of.discovered(keys[i], after)...)
			case len(keys[i]) > 0:
				found = append(found, &run{piece: of, keys: keys[i], more: len(keys[i]) == of.Limit})
				namespaces[of.namespace] = struct{}{}
			case after != (position{}):
				namespaces[of.namespace] = struct{}{} // It may have newer Changes.
			}
		}
		pieces = next
	}
	if namespace == "" {
		m.remember(namespaces)
	}
	return found, nil
}

// piece is a part of the table: the keys of a namespace that come after a position, or a gap between the namespaces that are known.
type piece struct {
	table.Span
	// namespace is empty for a gap.
	namespace string
}

// pieceOf returns the piece of a namespace. Its limit is such that all keys that are expected may be in one namespace.
func pieceOf(namespace string, after position, expected int) piece {
	from := position{name: after.name, namespace: namespace}.key()
	if after.name != "" && namespace <= after.namespace {
		from += "\x00"
	}
	return piece{table.Span{From: from, To: behind(namespace), Limit: min(expected+leastAhead, mostAhead)}, namespace}
}

// behind returns the first key that may be of a namespace that sorts after another one.
func behind(namespace string) string { return namespace + string(rune('/'+1)) }

// pieces returns the pieces of the known namespaces, and the gaps between them.
func (m *merger) pieces(after position, expected int) []piece {
	m.mu.Lock()
	known := m.known
	m.mu.Unlock()
	pieces := make([]piece, 0, 2*len(known)+1)
	from := ""
	for _, namespace := range known {
		pieces = append(pieces, gap(from, namespace+"/"), pieceOf(namespace, after, expected/len(known)))
		from = behind(namespace)
	}
	return append(pieces, gap(from, ""))
}

func gap(from, to string) piece { return piece{Span: table.Span{From: from, To: to, Limit: gapKeys}} }

// discovered returns the pieces of the namespaces of the first keys of a gap, and the rest of the gap.
func (p piece) discovered(keys []string, after position) (pieces []piece) {
	last := ""
	for _, key := range keys {
		if namespace, _, _ := strings.Cut(key, "/"); namespace != last {
			pieces, last = append(pieces, pieceOf(namespace, after, 0)), namespace
		}
	}
	if len(keys) == p.Limit {
		pieces = append(pieces, gap(behind(last), p.To))
	}
	return pieces
}

// remember replaces the known namespaces.
func (m *merger) remember(namespaces map[string]struct{}) {
	// The keys of the namespace a-b precede those of a.
	byKey := func(a, b string) int { return strings.Compare(a+"/", b+"/") }
	known := slices.SortedFunc(maps.Keys(namespaces), byKey)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = known
}

// run is the keys of a namespace that have been read and not used. It is not empty.
type run struct {
	piece
	keys []string
	// more is set if there may be further keys.
	more bool
}

// first returns the first position.
func (r *run) first() position {
	return position{name: r.keys[0][len(r.namespace)+1:], namespace: r.namespace}
}

// advance removes the first key, and reads further ones if it was the last. The run is empty if there are none.
func (r *run) advance(ctx context.Context, changes *table.Table) error {
	used := r.keys[0]
	if r.keys = r.keys[1:]; len(r.keys) > 0 || !r.more {
		return nil
	}
	keys, err := changes.FirstKeys(ctx, table.Span{From: used + "\x00", To: r.To, Limit: moreAhead})
	if err != nil {
		return err
	}
	r.keys, r.more = keys[0], len(keys[0]) == moreAhead
	return nil
}

// runs is a heap of runs, the one with the first position first.
type runs []*run

var _ heap.Interface = &runs{}

// Len implements heap.Interface.
func (r runs) Len() int { return len(r) }

// Less implements heap.Interface.
func (r runs) Less(i, j int) bool { return r[i].first().compare(r[j].first()) < 0 }

// Swap implements heap.Interface.
func (r runs) Swap(i, j int) { r[i], r[j] = r[j], r[i] }

// Push implements heap.Interface.
func (r *runs) Push(added any) { *r = append(*r, added.(*run)) }

// Pop implements heap.Interface.
func (r *runs) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
