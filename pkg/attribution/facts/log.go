// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/internal/fairqueue"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// maxQueued and maxQueuedBytes bound the enqueued facts that are not written yet.
	maxQueued      = 10_000
	maxQueuedBytes = 64 << 20
	// writeInterval is the least time between two writes of enqueued facts.
	writeInterval = 10 * time.Millisecond
	// timeout bounds the removal of old rows, and the last write when the process ends.
	timeout = 5 * time.Second
)

var _ attribution.Facts = &Log{}

// Log receives facts on every replica and sends them to its followers. It may be used concurrently.
type Log struct {
	table *table.Table
	// lags has a row for each controller, with the lags that it has measured.
	lags  *table.Table
	clock clock.WithTicker
	// replica and written make the keys of rows unique.
	replica  string
	written  atomic.Uint64
	deflater *deflater

	lasting lasting

	mu sync.Mutex
	// queue has the enqueued facts that are not written. It selects the one to evict; the buffer writes them.
	queue  *fairqueue.Queue[line]
	buffer *table.Buffer[*queued]
	// followers are those of this process.
	followers sets.Set[*ahead]
}

// queued is an enqueued fact that is not written.
type queued = fairqueue.Entry[line]

// New returns the log that is stored in the tables "facts" and "factlags" of a store. To be followed, the store must be watchable.
func New(store *table.Store, clock clock.WithTicker) *Log {
	l := &Log{
		table: store.Table("facts"), lags: store.Table("factlags"), clock: clock, replica: string(uuid.NewUUID())[:8],
		deflater: newDeflater(),
		queue:    fairqueue.New[line](maxQueued), followers: sets.New[*ahead](),
	}
	l.buffer = table.NewBuffer(table.BufferConfig[*queued]{
		Table: l.table, Lock: &l.mu, Clock: clock,
		MaxRows: maxQueued, MaxBytes: maxQueuedBytes,
		Interval: writeInterval, DrainTimeout: timeout,
		Encode: l.encode, Done: l.done,
	})
	return l
}

// Record writes facts. They are durable when it returns nil; otherwise some of them may be.
func (l *Log) Record(ctx context.Context, facts []attribution.Fact) error {
	if err := l.table.Put(ctx, l.rows(encodeLines(facts))...); err != nil {
		return fmt.Errorf("recording facts: %w", err)
	}
	return nil
}

// Enqueue hands facts to Run and to the followers in this process. It neither blocks nor fails: when the queue is full, the
// oldest fact of the namespace with most facts in it is evicted.
func (l *Log) Enqueue(facts ...attribution.Fact) {
	lines := encodeLines(facts)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range lines {
		added, evicted := l.queue.Add(line.namespace, line)
		l.buffer.Add(added, len(line.text))
		if evicted != nil {
			l.evict(evicted)
		}
	}
	for l.buffer.Over() {
		l.evict(l.queue.Evict())
	}
	for follower := range l.followers {
		follower.enqueue(facts)
	}
}

// evict drops a fact that has left the queue. One that is being written is lost only if that fails.
func (l *Log) evict(fact *queued) {
	if l.buffer.Remove(fact) {
		attribution.Evicted(1)
	}
}

// encode returns the writes of enqueued facts. Lines do not change, so that the lock is not held while they are compressed.
func (l *Log) encode(take func() []*queued) table.Writes {
	l.mu.Lock()
	facts := take()
	l.mu.Unlock()
	lines := make([]line, len(facts))
	for i, fact := range facts {
		lines[i] = fact.Value
	}
	return table.Writes{Rows: l.rows(lines)}
}

// done removes written facts from the queue. After an error, those that were evicted meanwhile are lost.
func (l *Log) done(facts []*queued, err error) {
	for _, fact := range facts {
		switch {
		case err == nil:
			l.queue.Remove(fact)
		case !fact.Queued():
			attribution.Evicted(1)
		}
	}
}

// Run writes enqueued facts and removes rows that are too old. When ctx has ended, it writes what is left and returns, after
// some seconds at most. Every replica runs it.
func (l *Log) Run(ctx context.Context) {
	var group wait.Group
	defer group.Wait()
	group.StartWithContext(ctx, l.expireUntil)
	l.buffer.Run(ctx)
}
