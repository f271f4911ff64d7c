// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"maps"
	"sync"
	"time"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// Queue is the index of one destination's rows in the outbox, without their contents. It is used to find out whether an
// event changes anything, and for the status.
type Queue struct {
	mu sync.Mutex
	// latest has the newest pending change of each path.
	latest map[string]Pending
	// rows are the durable rows that are not pushed, oldest first; bytes is the size of their contents.
	rows  []queuedRow
	bytes int
	// left is the sequence of the last removed row. Rows are removed in order, and one can be removed before it is counted.
	left uint64
}

// Pending is the state of a path after a pending change.
type Pending struct {
	Sequence uint64
	// Hash is the blob's; zero for a removal.
	Hash            gitrepo.Hash
	ResourceVersion string
	Author          attribution.Author
}

type queuedRow struct {
	sequence uint64
	bytes    int
	// time is when the change was seen.
	time time.Time
}

// NewQueue returns an empty Queue.
func NewQueue() *Queue { return &Queue{latest: map[string]Pending{}} }

// Pending returns the newest pending change of path.
func (q *Queue) Pending(path string) (Pending, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change, ok := q.latest[path]
	return change, ok
}

// Enqueued records a change that is about to enter the outbox.
func (q *Queue) Enqueued(path string, change Pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.latest[path].Sequence < change.Sequence {
		q.latest[path] = change
	}
}

// Withdrawn records that a change did not enter the outbox.
func (q *Queue) Withdrawn(path string, sequence uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.latest[path].Sequence == sequence {
		delete(q.latest, path)
	}
}

// Durable records a row that can be pushed.
func (q *Queue) Durable(row Row) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if row.Sequence <= q.left {
		return
	}
	seen := row.Change.Seen
	if seen.IsZero() {
		seen = row.Change.Time
	}
	q.rows = append(q.rows, queuedRow{sequence: row.Sequence, bytes: len(row.Change.Content), time: seen})
	q.bytes += len(row.Change.Content)
}

// Removed records the removal of the oldest rows, and returns when their changes were seen.
func (q *Queue) Removed(rows []Row) (seen []time.Time) {
	if len(rows) == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, row := range rows {
		if q.latest[row.Change.Path].Sequence == row.Sequence {
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

// Fitting returns how many of the oldest rows have contents of maxBytes together, at least 1 and at most limit.
func (q *Queue) Fitting(limit, maxBytes int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	rows, size := 0, 0
	for rows < min(limit, len(q.rows)) && size < maxBytes {
		size += q.rows[rows].bytes
		rows++
	}
	return max(rows, 1)
}

// Counted returns the sequence of the last row that can be pushed.
func (q *Queue) Counted() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.rows) == 0 {
		return 0
	}
	return q.rows[len(q.rows)-1].sequence
}

// Gone records that the outbox has no row up to a counted sequence. The previous leader may have removed a row while this
// process read it.
func (q *Queue) Gone(through uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.latest, func(_ string, change Pending) bool { return change.Sequence <= through })
	q.left = max(q.left, through)
	for len(q.rows) > 0 && q.rows[0].sequence <= q.left {
		q.bytes -= q.rows[0].bytes
		q.rows = q.rows[1:]
	}
}

// Backlog is the size of the pending rows.
type Backlog struct {
	Rows, Bytes int
	// Oldest is when the oldest row was seen; zero without rows.
	Oldest time.Time
}

// Backlog returns the size and the age of what is pending.
func (q *Queue) Backlog() Backlog {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := Backlog{Rows: len(q.rows), Bytes: q.bytes}
	if len(q.rows) > 0 {
		waiting.Oldest = q.rows[0].time
	}
	return waiting
}
