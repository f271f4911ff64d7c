// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/gitrepo"
	"github.com/configbutler/slipstream/pkg/workstore"
)

// pushLog notes, for each branch, the push that is being made. A process that dies between
// the remote's acceptance and the removal of the rows finds the note when it starts again
// and learns from the remote whether the push landed.
type pushLog struct {
	table *workstore.Table
}

// pushNote is one such push.
type pushNote struct {
	// Tip is the commit that the branch has if the push landed.
	Tip gitrepo.Hash `json:"tip"`
	// Through is the last sequence that the push carries of each destination.
	Through map[types.UID]uint64 `json:"through"`
}

func (p *pushLog) key(k branchKey) string {
	return k.repository.String() + "/" + url.PathEscape(k.branch) + "/" + url.PathEscape(k.url)
}

func (p *pushLog) write(ctx context.Context, k branchKey, note pushNote) error {
	value, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("encode the note of a push: %w", err)
	}
	if err := p.table.Put(ctx, workstore.Row{Key: p.key(k), Value: value}); err != nil {
		return fmt.Errorf("note a push: %w", err)
	}
	return nil
}

func (p *pushLog) read(ctx context.Context, k branchKey) (pushNote, bool, error) {
	value, ok, err := p.table.Get(ctx, p.key(k))
	if err != nil || !ok {
		return pushNote{}, false, wrap("read the note of a push", err)
	}
	note, err := decodeNote(value)
	return note, err == nil, err
}

func decodeNote(value []byte) (pushNote, error) {
	var note pushNote
	err := json.Unmarshal(value, &note)
	return note, wrap("decode the note of a push", err)
}

// last returns the highest sequence of all notes.
func (p *pushLog) last(ctx context.Context) (uint64, error) {
	last := uint64(0)
	for row, err := range p.table.Scan(ctx, "") {
		if err != nil {
			return 0, fmt.Errorf("read the notes of pushes: %w", err)
		}
		note, err := decodeNote(row.Value)
		if err != nil {
			return 0, unreadable(p.table, row, err)
		}
		for _, sequence := range note.Through {
			last = max(last, sequence)
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
