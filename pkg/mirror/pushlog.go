// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// keptDoubts bounds the pushes in doubt that are recorded for a branch. With the backoff of a remote that does not respond,
	// the oldest of so many was aborted long ago.
	keptDoubts = 16
	// keptComparisons bounds the comparisons of earlier pushes that are recorded for a branch. Within compareLag, fewer are pushed.
	//
	// A destination takes 60 bytes of a note, which has at most one for each of the 1000 files of a push, and a comparison 140. So the notes
	// of a branch fit into a request to the store, which may have 1.5 MiB.
	keptComparisons = 2000
	// readComparisons is the number of rows of comparisons that are read at once. Each has up to rowScopes scopes, about 170 kB.
	readComparisons = 8
)

// pushLog stores, for each branch, a note of the push in progress and of earlier ones that the remote may still accept. After
// a crash between the remote's acceptance and the removal of the rows, the next process uses the notes to find out from the
// remote which pushes were accepted.
//
// The notes of a branch are one row. The comparisons that they refer to have rows of their own: they may be larger than any row, and are
// written once, however many pushes follow.
type pushLog struct {
	table *storetable.Table
}

// pushNote is one such push.
type pushNote struct {
	// Base is the tip of the branch before the push. While the branch is at it, the remote may still accept the push,
	// although no process waits for the response.
	Base gitrepo.Hash `json:"base"`
	// Tip is the tip of the branch after the push.
	Tip gitrepo.Hash `json:"tip"`
	// Through is the last sequence that the push carries of each destination.
	Through map[types.UID]uint64 `json:"through"`
	// Recorded is set if the history has prepared Changes of the push, which are recorded when it is accepted.
	Recorded bool `json:"recorded,omitempty"`
	// Compares are the comparisons whose results the push carries; Compared are those of earlier pushes. Rows of older changes may
	// remain. Only the last note of a branch has Compared.
	Compares []*notedComparison `json:"comparisons,omitempty"`
	Compared []*notedComparison `json:"earlier,omitempty"`
}

// isNeededFor reports whether the note must be kept for the destinations that are true, whose changes are still to be pushed: the push
// has changes of one of them, or it or an earlier one compared it, so that older changes are not pushed again.
func (n pushNote) isNeededFor(destinations map[types.UID]bool) bool {
	for uid := range n.Through {
		if destinations[uid] {
			return true
		}
	}
	compared := func(comparison *notedComparison) bool { return destinations[comparison.UID] }
	return slices.ContainsFunc(n.Compares, compared) || slices.ContainsFunc(n.Compared, compared)
}

// compareLag is how long after a comparison rows of earlier changes may still arrive from the watches. Those that have arrived may remain
// for longer, as while the remote rejects the files of their destination.
const compareLag = time.Minute

// key returns the key of the notes of a branch.
func (p *pushLog) key(k branchKey) string {
	return k.repository.String() + "/" + url.PathEscape(k.branch) + "/" + url.PathEscape(k.url)
}

// notesKey returns the key of the notes of the branch that a row belongs to.
func notesKey(key string) string {
	const parts = 4 // The namespace and the name of the repository, the branch and the URL.
	split := strings.SplitN(key, "/", parts+1)
	return strings.Join(split[:min(len(split), parts)], "/")
}

// write replaces the notes of a branch. comparisons are the rows of comparisons that they refer to and that are not stored yet. Rows are
// written in order, so the notes never refer to missing ones.
func (p *pushLog) write(ctx context.Context, k branchKey, comparisons []storetable.Row, notes []pushNote) error {
	value, err := json.Marshal(notes)
	if err != nil {
		return fmt.Errorf("encode the notes of pushes: %w", err)
	}
	rows := append(slices.Clone(comparisons), storetable.Row{Key: p.key(k), Value: value})
	return wrap("note a push", p.table.Put(ctx, rows...))
}

// remove removes rows of comparisons.
func (p *pushLog) remove(ctx context.Context, keys []string) error {
	return wrap("remove comparisons of pushes", p.table.Delete(ctx, keys...))
}

// read returns the notes of a branch, oldest first, and the keys of the rows of all its comparisons by their IDs. A process that died may
// have left comparisons that no note refers to.
func (p *pushLog) read(ctx context.Context, k branchKey) (notes []pushNote, stored map[string][]string, err error) {
	if notes, err = p.notes(ctx, p.key(k)); err != nil {
		return nil, nil, err
	}
	stored, listed := map[string][]string{}, map[string]map[watch.Watch]position{}
	for row, err := range p.table.ScanBy(ctx, p.key(k)+"/", readComparisons) {
		if err != nil {
			return nil, nil, fmt.Errorf("read the comparisons of pushes: %w", err)
		}
		id, err := decodeScopes(row, listed)
		if err != nil {
			return nil, nil, outbox.Unreadable(p.table, row, err)
		}
		stored[id] = append(stored[id], row.Key)
	}
	for _, note := range notes {
		for _, comparison := range slices.Concat(note.Compares, note.Compared) {
			comparison.listed = listed[comparison.ID]
		}
	}
	return notes, stored, nil
}

func decodeNotes(value []byte) ([]pushNote, error) {
	var notes []pushNote
	err := json.Unmarshal(value, &notes)
	return notes, wrap("decode the notes of pushes", err)
}

// last returns the highest sequence of all notes.
func (p *pushLog) last(ctx context.Context) (uint64, error) {
	last := uint64(0)
	err := p.scan(ctx, func(_ string, notes []pushNote) {
		for _, note := range notes {
			for _, sequence := range note.Through {
				last = max(last, sequence)
			}
		}
	})
	return last, err
}

// retain removes the rows of the branches for which keep returns false.
func (p *pushLog) retain(ctx context.Context, keep func(key string, notes []pushNote) bool) error {
	var dropped []string
	kept := map[string]bool{}
	err := p.keys(ctx, func(key, branch string, notes []pushNote) {
		if _, known := kept[branch]; !known {
			kept[branch] = keep(branch, notes)
		}
		if !kept[branch] {
			dropped = append(dropped, key)
		}
	})
	if err != nil || len(dropped) == 0 {
		return err
	}
	return wrap("remove notes of pushes", p.table.Delete(ctx, dropped...))
}

// scan calls each with the key and the notes of every branch.
func (p *pushLog) scan(ctx context.Context, each func(key string, notes []pushNote)) error {
	return p.keys(ctx, func(key, branch string, notes []pushNote) {
		if key == branch {
			each(branch, notes)
		}
	})
}

// keys calls each with the key of every row and that of the notes of its branch: with the notes before the comparisons that they refer to,
// which are not read.
func (p *pushLog) keys(ctx context.Context, each func(key, branch string, notes []pushNote)) error {
	for key, err := range p.table.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("read the notes of pushes: %w", err)
		}
		branch := notesKey(key)
		var notes []pushNote
		if key == branch {
			if notes, err = p.notes(ctx, key); err != nil {
				return err
			}
		}
		each(key, branch, notes)
	}
	return nil
}

// notes reads the notes of a branch; none if they were removed meanwhile.
func (p *pushLog) notes(ctx context.Context, key string) ([]pushNote, error) {
	value, ok, err := p.table.Get(ctx, key)
	if err != nil || !ok {
		return nil, wrap("read the notes of pushes", err)
	}
	notes, err := decodeNotes(value)
	if err != nil {
		return nil, outbox.Unreadable(p.table, storetable.Row{Key: key, Value: value}, err)
	}
	return notes, nil
}

// wrap wraps err with what was being done; nil stays nil.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
