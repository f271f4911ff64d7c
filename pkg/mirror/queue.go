// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"sync"
	"time"

	"github.com/configbutler/slipstream/pkg/gitrepo"
)

// queue knows what of one destination is in the outbox, without the contents: enough to
// tell whether an event brings anything new, and what to report.
type queue struct {
	mu sync.Mutex
	// latest is, per path, the newest change that is on its way.
	latest map[string]latest
	// rows and bytes count what is durable and not pushed.
	rows  int
	bytes int
	// oldest is when the oldest durable row was seen; zero without rows.
	oldest time.Time
}

type latest struct {
	sequence uint64
	// hash is the blob's; zero for a removal.
	hash gitrepo.Hash
}

func newQueue() *queue { return &queue{latest: map[string]latest{}} }

// pending returns the blob that the newest change on its way gives path (zero: removed).
func (q *queue) pending(path string) (gitrepo.Hash, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	entry, ok := q.latest[path]
	return entry.hash, ok
}

// enqueued notes a change that is about to enter the outbox.
func (q *queue) enqueued(sequence uint64, path string, hash gitrepo.Hash) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.latest[path].sequence < sequence {
		q.latest[path] = latest{sequence: sequence, hash: hash}
	}
}

// durable notes that a row can be pushed.
func (q *queue) durable(row Row) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rows++
	q.bytes += len(row.Change.Content)
	if q.oldest.IsZero() {
		q.oldest = row.Change.Time
	}
}

// removed notes rows that left the outbox; next is when the oldest of the remaining rows
// was seen.
func (q *queue) removed(rows []Row) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, row := range rows {
		q.rows--
		q.bytes -= len(row.Change.Content)
		if q.latest[row.Change.Path].sequence == row.Sequence {
			delete(q.latest, row.Change.Path)
		}
	}
	q.oldest = time.Time{}
	if q.rows > 0 && len(rows) > 0 {
		// Rows are in order of time, so what remains is younger than what left.
		q.oldest = rows[len(rows)-1].Change.Time
	}
}

// backlog is what waits to be pushed.
type backlog struct {
	rows, bytes int
	oldest      time.Time
}

func (q *queue) backlog() backlog {
	q.mu.Lock()
	defer q.mu.Unlock()
	return backlog{rows: q.rows, bytes: q.bytes, oldest: q.oldest}
}
