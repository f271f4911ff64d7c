// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// keptDoubts bounds the pushes in doubt that are recorded for a branch. With the backoff of a remote that does not respond,
// the oldest of so many was aborted long ago.
const keptDoubts = 16

// pushLog stores, for each branch, a note of the push in progress and of earlier ones that the remote may still accept. After
// a crash between the remote's acceptance and the removal of the rows, the next process uses the notes to find out from the
// remote which pushes were accepted.
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
	// Compares are the scopes that the push brings to the state of a list; Compared are those of earlier pushes. Rows of older
	// changes may remain.
	Compares []comparedScope `json:"compares,omitempty"`
	Compared []comparedScope `json:"compared,omitempty"`
}

// isNeededFor reports whether the note must be kept for the destinations that are true, whose changes are still to be pushed: the push
// has changes of one of them, or it or an earlier one compared it, so that older changes are not pushed again.
func (n pushNote) isNeededFor(destinations map[types.UID]bool) bool {
	for uid := range n.Through {
		if destinations[uid] {
			return true
		}
	}
	compared := func(scope comparedScope) bool { return destinations[scope.UID] }
	return slices.ContainsFunc(n.Compares, compared) || slices.ContainsFunc(n.Compared, compared)
}

// comparedScope is how far a destination was compared with the objects of a watch, at which resourceVersion.
type comparedScope struct {
	UID             types.UID   `json:"uid"`
	Watch           watch.Watch `json:"watch"`
	ResourceVersion string      `json:"resourceVersion"`
	// Through is the last object that was compared, as in a position; empty if all were.
	Through string    `json:"through,omitempty"`
	Time    time.Time `json:"time"`
}

func (s comparedScope) position() position {
	return position{resourceVersion: s.ResourceVersion, through: s.Through}
}

// includes reports whether every change that other supersedes is also superseded by s.
func (s comparedScope) includes(other comparedScope) bool {
	return s.UID == other.UID && s.Watch == other.Watch && s.position().includes(other.position())
}

// compareLag is how long after a comparison rows of earlier changes may still arrive from the watches. Those that have arrived may remain
// for longer, as while the remote rejects the files of their destination.
const compareLag = time.Minute

func (p *pushLog) key(k branchKey) string {
	return k.repository.String() + "/" + url.PathEscape(k.branch) + "/" + url.PathEscape(k.url)
}

func (p *pushLog) write(ctx context.Context, k branchKey, notes []pushNote) error {
	value, err := json.Marshal(notes)
	if err != nil {
		return fmt.Errorf("encode the notes of pushes: %w", err)
	}
	if err := p.table.Put(ctx, storetable.Row{Key: p.key(k), Value: value}); err != nil {
		return fmt.Errorf("note a push: %w", err)
	}
	return nil
}

// read returns the notes of a branch, oldest first.
func (p *pushLog) read(ctx context.Context, k branchKey) ([]pushNote, error) {
	value, ok, err := p.table.Get(ctx, p.key(k))
	if err != nil || !ok {
		return nil, wrap("read the notes of pushes", err)
	}
	return decodeNotes(value)
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

// retain removes the notes of the branches for which keep returns false.
func (p *pushLog) retain(ctx context.Context, keep func(key string, notes []pushNote) bool) error {
	var dropped []string
	err := p.scan(ctx, func(key string, notes []pushNote) {
		if !keep(key, notes) {
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
	for row, err := range p.table.Scan(ctx, "") {
		if err != nil {
			return fmt.Errorf("read the notes of pushes: %w", err)
		}
		notes, err := decodeNotes(row.Value)
		if err != nil {
			return outbox.Unreadable(p.table, row, err)
		}
		each(row.Key, notes)
	}
	return nil
}

// wrap wraps err with what was being done; nil stays nil.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
