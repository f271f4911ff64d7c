// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// writeInterval is the least time between two writes of events. In a storm, each object is written that often at most.
	writeInterval = 100 * time.Millisecond

	// rowBytes is the size that the buffer assumes for a row, and maxBufferBytes bounds the sum. Rows are bounded by the
	// capacity already, and their authors by maxAuthorBytes.
	rowBytes       = 512
	maxBufferBytes = 64 << 20
)

// Notices are the callbacks of Run, called from one goroutine. All are set.
type Notices struct {
	// Opened is called with a namespace that has a batch. Due returns when to close it.
	Opened func(namespace string)
	// Filling is called when 70 % of the capacity are reached, and again only after it was below half of it.
	Filling func(changes, capacity int)
	// Overflowed is called with a namespace whose changes were dropped, and that must be compared instead.
	Overflowed func(namespace string)
	// Blocked is called with the error when events cannot be written, and with nil when they can be written again.
	Blocked func(error)
}

// part is a part of a batch that has rows of its own.
type part int

const (
	// changePart is the row of one change.
	changePart part = iota
	// headPart is the row of the batch.
	headPart
	// droppedPart is the rows of changes that were dropped.
	droppedPart
)

// unwritten identifies rows of a batch that the store does not have as they are.
type unwritten struct {
	batch *batch
	part  part
	// object is that of a changePart.
	object Object
}

func (i *Intake) newBuffer(work *table.Table) *table.Buffer[unwritten] {
	return table.NewBuffer(table.BufferConfig[unwritten]{
		Table: work, Lock: &i.mu, Clock: i.clock,
		MaxRows:  2 * i.capacity, // each change may wait while an older state of it is being written
		MaxBytes: maxBufferBytes,
		Interval: writeInterval, DrainTimeout: controller.DrainTimeout,
		Encode: i.encode, Blocked: i.setBlocked,
	})
}

// writeChange has a change written. The caller holds mu.
func (i *Intake) writeChange(b *batch, object Object) {
	i.buffer.Add(unwritten{batch: b, part: changePart, object: object}, rowBytes)
}

// writeHead has the row of a batch written. The caller holds mu.
func (i *Intake) writeHead(b *batch) { i.buffer.Add(unwritten{batch: b, part: headPart}, rowBytes) }

// encode returns the writes of the unwritten rows.
func (i *Intake) encode(take func() []unwritten) table.Writes {
	i.mu.Lock()
	defer i.mu.Unlock()
	var writes table.Writes
	var heads []table.Row
	for _, row := range take() {
		b := row.batch
		switch row.part {
		case changePart:
			if change := b.changes[row.object]; change != nil {
				writes.Rows = append(writes.Rows, b.encodeChange(change))
			}
		case headPart:
			heads = append(heads, b.encodeHead())
		case droppedPart:
			writes.Ranges = append(writes.Ranges, table.Range{From: b.changesStart(), To: b.rowsEnd()})
		}
	}
	// The row that closes a batch is written after its changes, and before the deletion of those that it stands for.
	writes.Rows = append(writes.Rows, heads...)
	return writes
}

// setBlocked records whether events can be written, and notifies Run.
func (i *Intake) setBlocked(err error) {
	i.metrics.blocked.Set(0)
	if err != nil {
		i.metrics.blocked.Set(1)
		err = fmt.Errorf("store pending changes: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.notices.blocked = append(i.notices.blocked, err)
	i.notify()
}

// Run writes events until ctx ends, and then those that are left. It starts with a notice for each namespace that has a
// batch already.
func (i *Intake) Run(ctx context.Context, notices Notices) {
	defer func() { // The next Run reports them.
		i.metrics.objects.Set(0)
		i.metrics.blocked.Set(0)
	}()
	i.notifyAll()
	var group wait.Group
	defer group.Wait()
	group.StartWithContext(ctx, i.buffer.Run)
	for {
		i.publish(notices)
		select {
		case <-ctx.Done():
			return
		case <-i.wake:
		}
	}
}

// notifyAll enqueues a notice for each namespace that has a batch.
func (i *Intake) notifyAll() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for namespace := range i.namespaces {
		i.notices.opened.Insert(namespace)
	}
	i.measure()
}

// publish calls the notices of what has happened since the last call.
func (i *Intake) publish(notices Notices) {
	i.mu.Lock()
	unpublished, changes := i.notices, i.changes
	i.notices = newNotices()
	i.notices.nearlyFull = unpublished.nearlyFull
	i.mu.Unlock()
	for _, namespace := range sets.List(unpublished.opened) {
		notices.Opened(namespace)
	}
	for _, namespace := range sets.List(unpublished.overflowed) {
		notices.Overflowed(namespace)
	}
	if unpublished.filling {
		notices.Filling(changes, i.capacity)
	}
	for _, err := range unpublished.blocked {
		notices.Blocked(err)
	}
}
