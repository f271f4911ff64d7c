// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// keptDoubts is how many pushes of which nothing is known are remembered for a branch. A
// remote that answers none of them is asked less and less often: the oldest of so many was
// given up long ago.
const keptDoubts = 16

// pushLog notes, for each branch, the push that is being made, and those before it that may
// still land. A process that dies between the remote's acceptance and the removal of the
// rows finds the notes when it starts again and learns from the remote what has landed.
type pushLog struct {
	table *storetable.Table
}

// pushNote is one such push.
type pushNote struct {
	// Base is the commit that the branch has before it. While the branch is there, the push
	// can land: the remote may be at it, although nobody waits for its answer any more.
	Base gitrepo.Hash `json:"base"`
	// Tip is the commit that the branch has if the push landed.
	Tip gitrepo.Hash `json:"tip"`
	// Through is the last sequence that the push carries of each destination.
	Through map[types.UID]uint64 `json:"through"`
	// Lands says that somebody has noted what the push brings, and is to be told when it has landed.
	Lands bool `json:"lands,omitempty"`
	// Compares is what the push brings to the state of a list; Compared is what pushes shortly
	// before have brought to one. Rows of older changes may be left.
	Compares []comparedScope `json:"compares,omitempty"`
	Compared []comparedScope `json:"compared,omitempty"`
}

// comparedScope tells at which resourceVersion a destination was compared with the objects
// that a watch covers.
type comparedScope struct {
	UID             types.UID   `json:"uid"`
	Watch           watch.Watch `json:"watch"`
	ResourceVersion string      `json:"resourceVersion"`
	Time            time.Time   `json:"time"`
}

// compareLag is how long after a comparison rows of changes that came before it are reckoned
// with: until the watches have delivered them.
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

// read returns the notes of a branch, the oldest first.
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
	for row, err := range p.table.Scan(ctx, "") {
		if err != nil {
			return 0, fmt.Errorf("read the notes of pushes: %w", err)
		}
		notes, err := decodeNotes(row.Value)
		if err != nil {
			return 0, unreadable(p.table, row, err)
		}
		for _, note := range notes {
			for _, sequence := range note.Through {
				last = max(last, sequence)
			}
		}
	}
	return last, nil
}

// wrap says what was being done when err happened; nil stays nil.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
