// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

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
	// Through is the last sequence the push carries, by "namespace/name" of destination.
	Through map[string]uint64 `json:"through"`
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
	var note pushNote
	value, ok, err := p.table.Get(ctx, p.key(k))
	if err != nil || !ok {
		return note, false, wrap("read the note of a push", err)
	}
	if err := json.Unmarshal(value, &note); err != nil {
		return note, false, fmt.Errorf("decode the note of a push: %w", err)
	}
	return note, true, nil
}

func (p *pushLog) clear(ctx context.Context, k branchKey) error {
	return wrap("remove the note of a push", p.table.Delete(ctx, p.key(k)))
}

// wrap says what was being done when err happened; nil stays nil.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
