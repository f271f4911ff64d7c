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
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/internal/fairqueue"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// maxWaiting is how many enqueued facts may wait to be written.
	maxWaiting = 10_000
	// pace is the least time from one write of enqueued facts to the next.
	pace = 10 * time.Millisecond
	// patience bounds one attempt to write, and the last one when the process ends.
	patience = 5 * time.Second
)

var _ attribution.Facts = &Log{}

// Log takes in facts, on every replica, and tells them to whoever follows. It may be used concurrently.
type Log struct {
	table *storetable.Table
	clock clock.WithTicker
	// replica and written make the keys of rows unique.
	replica  string
	written  atomic.Uint64
	deflater *deflater

	lasting lasting

	mu      sync.Mutex
	waiting *fairqueue.Queue[waitingFact]
	// followers are those of this process.
	followers sets.Set[*ahead]
	// wake says that facts wait.
	wake chan struct{}
}

// waitingFact is an enqueued fact.
type waitingFact struct {
	attribution.Fact
	// writing says that an attempt to write it has begun and not ended.
	writing bool
}

// New returns the log that is kept in the table "facts" of a store, which must be watchable to be followed.
func New(store *storetable.Store, clock clock.WithTicker) *Log {
	return &Log{
		table: store.Table("facts"), clock: clock, replica: string(uuid.NewUUID())[:8],
		deflater: newDeflater(),
		waiting:  fairqueue.New[waitingFact](maxWaiting), followers: sets.New[*ahead](), wake: make(chan struct{}, 1),
	}
}

// Record writes facts. They are durable when it returns nil; otherwise some may be.
func (l *Log) Record(ctx context.Context, facts []attribution.Fact) error {
	if err := l.table.Put(ctx, l.rows(ctx, facts)...); err != nil {
		return fmt.Errorf("recording facts: %w", err)
	}
	return nil
}

// Enqueue hands facts over to Run, and to those who follow in this process. It neither waits nor fails: of more than 10 000 facts that wait, the oldest of the
// namespace that most of them are about are given up.
func (l *Log) Enqueue(facts ...attribution.Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fact := range facts {
		_, evicted := l.waiting.Add(fact.Namespace, waitingFact{Fact: fact})
		if evicted != nil && !evicted.Value.writing {
			attribution.Evicted(1)
		}
	}
	for follower := range l.followers {
		follower.enqueue(facts)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run writes enqueued facts, the first at once and what gathers meanwhile a moment later, and removes rows that are too
// old. When ctx has ended it writes what is left and returns, after some seconds at most. Every replica runs it.
func (l *Log) Run(ctx context.Context) {
	var group wait.Group
	group.StartWithContext(ctx, l.expireUntil)
	l.writeUntil(ctx)
	group.Wait()

	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := l.write(rest); err != nil {
		klog.FromContext(ctx).Error(err, "Reports of who made changes are lost at the end of the process")
	}
}

// writeUntil writes what waits whenever there is something, until ctx ends.
func (l *Log) writeUntil(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		next := l.clock.NewTimer(pace)
		if err := l.write(ctx); err != nil {
			next.Stop()
			return
		}
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C():
		}
	}
}

// write writes what waits, as often as it takes. The error is that of ctx.
func (l *Log) write(ctx context.Context) error {
	backoff := newBackoff()
	for {
		err := l.attempt(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Reports of who made changes wait because they cannot be written")
		}
		if err := l.pause(ctx, &backoff); err != nil {
			return err
		}
	}
}

// attempt writes what waits. Facts wait on until they are written, so that the bound holds for these too.
func (l *Log) attempt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	entries, facts := l.begin()
	err := l.Record(ctx, facts)
	l.end(entries, err == nil)
	return err
}

// begin marks all that waits as being written.
func (l *Log) begin() ([]*fairqueue.Entry[waitingFact], []attribution.Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := l.waiting.Entries()
	facts := make([]attribution.Fact, len(entries))
	for i, entry := range entries {
		entry.Value.writing = true
		facts[i] = entry.Value.Fact
	}
	return entries, facts
}

// end takes out what is written. What is not, and has had to make room meanwhile, is lost.
func (l *Log) end(entries []*fairqueue.Entry[waitingFact], written bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, entry := range entries {
		switch {
		case written:
			l.waiting.Remove(entry)
		case entry.Queued():
			entry.Value.writing = false
		default:
			attribution.Evicted(1)
		}
	}
}

// newBackoff says how long to wait for a store that fails.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 10 * time.Second}
}

// pause waits for the next attempt. The error is that of ctx.
func (l *Log) pause(ctx context.Context, backoff *wait.Backoff) error {
	timer := l.clock.NewTimer(backoff.Step())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
