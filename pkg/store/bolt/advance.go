// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"
)

// Advance makes a revision the current one and compacts everything up to it, for a store whose content was copied from
// elsewhere. The next write gets a revision above all that were handed out there, and a watch from one of those fails as
// compacted instead of missing changes. It returns an error if the store is already beyond the revision.
func (e *Engine) Advance(ctx context.Context, revision int64) error {
	if err := e.committer.commit(ctx, advance{revision: revision}, 0); err != nil {
		return fmt.Errorf("advancing to revision %d: %w", revision, err)
	}
	if err := e.compactor.dropHistory(ctx); err != nil {
		return fmt.Errorf("dropping history before revision %d: %w", revision, err)
	}
	return nil
}

// advance is the mutation that moves the current and the oldest readable revision.
type advance struct {
	revision int64
}

func (a advance) check(w *writer) error {
	if a.revision < w.revision {
		return fmt.Errorf("the store is at revision %d, and revisions never go back", w.revision)
	}
	return nil
}

func (a advance) write(w *writer) error {
	w.changed = true
	w.revision, w.compacted = a.revision, a.revision
	return nil
}
