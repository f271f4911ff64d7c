// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// segmentsPerCommit bounds the segments dropped in one transaction, and with it how long writers wait.
const segmentsPerCommit = 8

// Compact makes the revisions before the given one unreadable and frees what they
// occupy in the file. It fails with rpctypes.ErrCompacted if that was done before,
// and with rpctypes.ErrFutureRev for a revision that is not reached yet.
func (e *Engine) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	began := e.options.Clock.Now()
	change := &compaction{revision: r.Revision}
	if err := e.committer.commit(ctx, change, 0); err != nil {
		return nil, err
	}
	if err := e.dropHistory(ctx); err != nil {
		return nil, fmt.Errorf("dropping compacted history: %w", err)
	}
	e.metrics.compacted(e.options.Clock.Since(began))
	return &pb.CompactionResponse{Header: e.header(change.at)}, nil
}

// dropHistory frees compacted segments, in transactions small enough for writers to run in between.
func (e *Engine) dropHistory(ctx context.Context) error {
	for {
		drop := &segmentDrop{}
		if err := e.committer.commit(ctx, drop, 0); err != nil {
			return err
		}
		if drop.dropped < segmentsPerCommit {
			return nil
		}
	}
}

// compactionLoop compacts, at every interval, to the revision that was current at
// the interval before.
func (e *Engine) compactionLoop() {
	target := e.Revision()
	ticker := e.options.Clock.NewTicker(e.options.CompactionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C():
		}
		next := e.Revision()
		if target > e.CompactRevision() {
			if _, err := e.Compact(context.Background(), &pb.CompactionRequest{Revision: target}); err != nil {
				e.logger.Error(err, "Failed to compact the store, will retry at the next interval", "revision", target)
			}
		}
		target = next
	}
}

// compaction moves the oldest readable revision.
type compaction struct {
	revision int64
	// at is the current revision at the time of the compaction.
	at int64
}

func (c *compaction) check(w *writer) error {
	switch {
	case c.revision <= w.compacted:
		return rpctypes.ErrCompacted
	case c.revision > w.revision:
		return rpctypes.ErrFutureRev
	default:
		return nil
	}
}

func (c *compaction) write(w *writer) error {
	c.at = w.revision
	w.changed = true
	w.compacted = c.revision
	return nil
}

// segmentDrop removes some compacted segments.
type segmentDrop struct {
	dropped int
}

func (d *segmentDrop) check(*writer) error { return nil }

func (d *segmentDrop) write(w *writer) (err error) {
	d.dropped, err = w.dropSegments(segmentsPerCommit)
	return err
}
