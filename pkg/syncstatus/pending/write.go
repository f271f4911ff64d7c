// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// pace is the least time between two writes of what has come. In a storm, an object is written that often at most.
	pace = 100 * time.Millisecond
	// patience bounds the last write, when the process ends.
	patience = 5 * time.Second
)

// Notices are what Run tells its caller, always from one goroutine. All are set.
type Notices struct {
	// Opened is called with a namespace that has a batch: Due says when it is to be closed.
	Opened func(namespace string)
	// Filling is called when 70 % of the capacity are reached; and again only when it was less than half meanwhile.
	Filling func(changes, capacity int)
	// Overflowed is called with a namespace whose changes were dropped, and that is to be compared instead.
	Overflowed func(namespace string)
	// Blocked is called with the error when events cannot be written, and with nil when they can again.
	Blocked func(error)
}

// Run makes durable what comes until ctx ends, and then what is left. It begins with a notice of each namespace that has a
// batch since before.
func (i *Intake) Run(ctx context.Context, notices Notices) {
	defer func() { // Whoever runs next tells.
		i.metrics.objects.Set(0)
		i.metrics.blocked.Set(0)
	}()
	i.recall()
	for {
		i.tell(notices)
		if i.writeAll(ctx, notices) != nil || !i.pause(ctx, pace) {
			break
		}
		select {
		case <-ctx.Done():
		case <-i.wake:
		}
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := i.write(rest, i.unwritten()...); err != nil {
		klog.FromContext(ctx).Error(err, "Who made the last changes of sources is lost at the end of the process")
	}
}

// recall has the namespaces told that there are.
func (i *Intake) recall() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for namespace := range i.namespaces {
		i.news.opened.Insert(namespace)
	}
	i.measure()
}

func (i *Intake) tell(notices Notices) {
	i.mu.Lock()
	news, changes := i.news, i.changes
	i.news = newNews()
	i.news.told = news.told
	i.mu.Unlock()
	for _, namespace := range sets.List(news.opened) {
		notices.Opened(namespace)
	}
	for _, namespace := range sets.List(news.overflowed) {
		notices.Overflowed(namespace)
	}
	if news.filling {
		notices.Filling(changes, i.capacity)
	}
}

// writeAll writes what is not durable, as often as it takes. The error is that of ctx.
func (i *Intake) writeAll(ctx context.Context, notices Notices) error {
	backoff := wait.Backoff{Duration: pace, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 10 * time.Second}
	for failed := false; ; failed = true {
		err := i.write(ctx, i.unwritten()...)
		switch {
		case err == nil && failed:
			i.metrics.blocked.Set(0)
			notices.Blocked(nil)
			return nil
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		klog.FromContext(ctx).Error(err, "Changes of sources wait because they cannot be written")
		i.metrics.blocked.Set(1)
		notices.Blocked(fmt.Errorf("changes of the source cannot be kept until they are recorded: %w", err))
		if !i.pause(ctx, backoff.Step()) {
			return ctx.Err()
		}
	}
}

// pause returns false when ctx ends first.
func (i *Intake) pause(ctx context.Context, length time.Duration) bool {
	timer := i.clock.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// unwritten returns the batches that are not durable.
func (i *Intake) unwritten() []*batch {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []*batch
	for _, batches := range i.namespaces {
		for _, b := range batches {
			if !b.durable() {
				out = append(out, b)
			}
		}
	}
	return out
}

func (i *Intake) takeTurn(ctx context.Context) error {
	select {
	case i.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (i *Intake) endTurn() { <-i.turn }

// write makes batches durable. When it fails, it may have done a part, and all of them count as not durable.
func (i *Intake) write(ctx context.Context, batches ...*batch) error {
	if err := i.takeTurn(ctx); err != nil {
		return err
	}
	defer i.endTurn()
	pending := i.take(batches)
	err := pending.write(ctx, i.table)
	if err != nil {
		i.giveBack(pending)
	}
	return err
}

// pending is what is being written.
type pending struct {
	rows []storetable.Row
	of   []pendingBatch
}

// pendingBatch is what is being written of a batch.
type pendingBatch struct {
	batch     *batch
	unwritten map[Object]struct{}
	head      bool
	dropped   bool
}

// take returns what is not durable of batches, and counts it as durable.
func (i *Intake) take(batches []*batch) pending {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out pending
	for _, b := range batches {
		out.of = append(out.of, pendingBatch{b, b.unwritten, b.unwrittenHead, b.dropped})
		for object := range b.unwritten {
			out.rows = append(out.rows, b.encodeChange(b.changes[object]))
		}
		if b.unwrittenHead {
			// After its changes, which must be there when it closes the batch.
			out.rows = append(out.rows, b.encodeHead())
		}
		b.unwritten, b.unwrittenHead, b.dropped = map[Object]struct{}{}, false, false
	}
	return out
}

func (p pending) write(ctx context.Context, table *storetable.Table) error {
	if err := table.Put(ctx, p.rows...); err != nil {
		return err
	}
	for _, of := range p.of {
		if !of.dropped {
			continue
		}
		// After the row that says what stands for them.
		if err := table.DeleteRange(ctx, of.batch.changesStart(), of.batch.rowsEnd()); err != nil {
			return err
		}
	}
	return nil
}

func (i *Intake) giveBack(p pending) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, of := range p.of {
		for object := range of.unwritten {
			if _, there := of.batch.changes[object]; there {
				of.batch.unwritten[object] = struct{}{}
			}
		}
		of.batch.unwrittenHead = of.batch.unwrittenHead || of.head
		of.batch.dropped = of.batch.dropped || of.dropped
	}
}
