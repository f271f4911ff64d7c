// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"k8s.io/utils/clock"
)

// segmentsPerCommit bounds the segments dropped in one transaction, and with it how long writers wait.
const segmentsPerCommit = 8

// Compact makes the revisions before the given one unreadable and frees what they
// occupy in the file. It fails with rpctypes.ErrCompacted if that was done before,
// and with rpctypes.ErrFutureRev for a revision that is not reached yet.
func (e *Engine) Compact(ctx context.Context, r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	at, err := e.compactor.compact(ctx, r.Revision)
	if err != nil {
		return nil, err
	}
	return &pb.CompactionResponse{Header: e.header(at)}, nil
}

// compactor compacts the history of a store: on request, and at intervals in its goroutine, run.
type compactor struct {
	committer *committer
	feed      *feed
	clock     clock.WithTicker
	interval  time.Duration
	logger    logr.Logger
	metrics   observers
	// stop ends the goroutine.
	stop <-chan struct{}
}

// compact makes the revisions before the given one unreadable and frees their space. It returns the current revision at
// the time of the compaction.
func (c *compactor) compact(ctx context.Context, revision int64) (at int64, err error) {
	began := c.clock.Now()
	change := &compaction{revision: revision}
	if err := c.committer.commit(ctx, change, 0); err != nil {
		return 0, err
	}
	if err := c.dropHistory(ctx); err != nil {
		return 0, fmt.Errorf("dropping compacted history: %w", err)
	}
	c.metrics.compacted(c.clock.Since(began))
	return change.at, nil
}

// dropHistory frees compacted segments, in transactions small enough for writers to run in between.
func (c *compactor) dropHistory(ctx context.Context) error {
	for {
		drop := &segmentDrop{}
		if err := c.committer.commit(ctx, drop, 0); err != nil {
			return err
		}
		if drop.dropped < segmentsPerCommit {
			return nil
		}
	}
}

// run compacts, at every interval, to the revision that was current at
// the interval before.
func (c *compactor) run() {
	target, _ := c.feed.revisions()
	ticker := c.clock.NewTicker(c.interval)
	defer ticker.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-ticker.C():
		}
		next, compacted := c.feed.revisions()
		if target > compacted {
			if _, err := c.compact(context.Background(), target); err != nil {
				c.logger.Error(err, "Failed to compact the store, will retry at the next interval", "revision", target)
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
