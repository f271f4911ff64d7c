// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"
	"sync"
	"time"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// queue is the index of one destination's rows in the outbox, without their contents. It is used to find out whether an
// event changes anything, and for the status.
type queue struct {
	mu sync.Mutex
	// latest has the newest pending change of each path.
	latest map[string]pendingChange
	// rows are the durable rows that are not pushed, oldest first; bytes is the size of their contents.
	rows  []queuedRow
	bytes int
	// left is the sequence of the last removed row. Rows are removed in order, and one can be removed before it is counted.
	left uint64
}

// pendingChange is the state of a path after a pending change.
type pendingChange struct {
	sequence uint64
	// hash is the blob's; zero for a removal.
	hash            gitrepo.Hash
	resourceVersion string
	author          attribution.Author
}

type queuedRow struct {
	sequence uint64
	bytes    int
	// time is when the change was seen.
	time time.Time
}

func newQueue() *queue { return &queue{latest: map[string]pendingChange{}} }

// pending returns the newest pending change of path.
func (q *queue) pending(path string) (pendingChange, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change, ok := q.latest[path]
	return change, ok
}

// enqueued records a change that is about to enter the outbox.
func (q *queue) enqueued(path string, change pendingChange) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.latest[path].sequence < change.sequence {
		q.latest[path] = change
	}
}

// withdrawn records that a change did not enter the outbox.
func (q *queue) withdrawn(path string, sequence uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.latest[path].sequence == sequence {
		delete(q.latest, path)
	}
}

// durable records a row that can be pushed.
func (q *queue) durable(row Row) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if row.Sequence <= q.left {
		return
	}
	seen := row.Change.seen
	if seen.IsZero() {
		seen = row.Change.Time
	}
	q.rows = append(q.rows, queuedRow{sequence: row.Sequence, bytes: len(row.Change.Content), time: seen})
	q.bytes += len(row.Change.Content)
}

// removed records the removal of the oldest rows, and returns when their changes were seen.
func (q *queue) removed(rows []Row) (seen []time.Time) {
	if len(rows) == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, row := range rows {
		if q.latest[row.Change.Path].sequence == row.Sequence {
			delete(q.latest, row.Change.Path)
		}
		q.left = max(q.left, row.Sequence)
	}
	for len(q.rows) > 0 && q.rows[0].sequence <= q.left {
		seen = append(seen, q.rows[0].time)
		q.bytes -= q.rows[0].bytes
		q.rows = q.rows[1:]
	}
	return seen
}

// counted returns the sequence of the last row that can be pushed.
func (q *queue) counted() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.rows) == 0 {
		return 0
	}
	return q.rows[len(q.rows)-1].sequence
}

// gone records that the outbox has no row up to a counted sequence. The previous leader may have removed a row while this
// process read it.
func (q *queue) gone(through uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.latest, func(_ string, change pendingChange) bool { return change.sequence <= through })
	q.left = max(q.left, through)
	for len(q.rows) > 0 && q.rows[0].sequence <= q.left {
		q.bytes -= q.rows[0].bytes
		q.rows = q.rows[1:]
	}
}

// backlog is the size of the pending rows.
type backlog struct {
	rows, bytes int
	// oldest is when the oldest row was seen; zero without rows.
	oldest time.Time
}

func (q *queue) backlog() backlog {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := backlog{rows: len(q.rows), bytes: q.bytes}
	if len(q.rows) > 0 {
		waiting.oldest = q.rows[0].time
	}
	return waiting
}
