// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

const (
	// queueLength is the number of queued writes beyond which the next one blocks.
	queueLength = 1024

	// maxBatchBytes bounds the size of a batch, and with it the memory of a transaction. A batch holds at least one
	// request, whatever its size.
	maxBatchBytes = 16 << 20
)

// mutation is one atomic change of the store.
type mutation interface {
	// check returns an error if the change cannot be made. It writes nothing, so an error concerns this change alone.
	check(w *writer) error

	// write makes the change. An error means that the transaction is damaged: nothing of the batch is committed.
	write(w *writer) error
}

// request is a mutation in the committer's queue.
type request struct {
	mutation
	size int
	err  error
	done chan struct{}
}

// committer commits the changes of a store. Its goroutine, run, is the only one that writes to the database.
type committer struct {
	db       *bbolt.DB
	maxBytes int
	clock    clock.PassiveClock
	logger   logr.Logger
	metrics  observers
	space    *spaceWatch

	// feed and leases receive what was committed.
	feed   *feed
	leases *leaseTable

	// queue has the changes to commit.
	queue chan *request
	// stop ends the committer; stopped is closed once it has completed all requests that it took.
	stop    <-chan struct{}
	stopped chan struct{}

	// failure is set if a commit failed that readers can see, so that it is unknown whether it is durable. Every later
	// write fails with it until the file is opened again.
	failure atomic.Pointer[error]
}

// commit queues a change and waits until it is durable or refused. If ctx ends first, the outcome is unknown, as with
// etcd, and the committer owns the change: only after a nil error may the caller read it.
func (c *committer) commit(ctx context.Context, change mutation, size int) error {
	if size > c.maxBytes {
		return rpctypes.ErrRequestTooLarge
	}
	if err := usable(ctx, c.stop); err != nil {
		return err
	}
	r := &request{mutation: change, size: size, done: make(chan struct{})}
	select {
	case c.queue <- r:
	case <-c.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.stopped:
		return r.outcome()
	}
}

// outcome returns the result of a request after the committer has ended: it has processed the request, or never will.
func (r *request) outcome() error {
	select {
	case <-r.done:
		return r.err
	default:
		return ErrClosed
	}
}

// run commits batches until stop is closed.
func (c *committer) run() {
	defer close(c.stopped)
	for {
		select {
		case first := <-c.queue:
			c.commitBatch(c.gather(first))
		case <-c.stop:
			return
		}
	}
}

// gather returns first and the requests queued behind it, without waiting for more.
func (c *committer) gather(first *request) []*request {
	batch, size := []*request{first}, first.size
	for size < maxBatchBytes {
		select {
		case r := <-c.queue:
			batch = append(batch, r)
			size += r.size
		default:
			return batch
		}
	}
	return batch
}

// commitBatch applies a batch in one transaction and completes its requests.
func (c *committer) commitBatch(batch []*request) {
	refused := c.failure.Load() != nil
	err := c.apply(batch)
	if err != nil {
		c.metrics.failed(len(batch), err, refused)
	}
	size := 0
	for _, r := range batch {
		if err != nil {
			r.err = err
		}
		if r.err == nil || err != nil {
			size += r.size
		}
	}
	c.space.ended(size, err)
	for _, r := range batch {
		close(r.done)
	}
}

// apply commits a batch in one transaction of bbolt, which is durable when its commit returns, and publishes its changes.
func (c *committer) apply(batch []*request) error {
	if failure := c.failure.Load(); failure != nil {
		return *failure
	}
	began := c.clock.Now()
	tx, err := c.db.Begin(true)
	if err != nil {
		return fmt.Errorf("beginning a write: %w", err)
	}
	w := newWriter(c.leases, tx)
	if err := w.apply(batch); err != nil {
		return errors.Join(fmt.Errorf("writing: %w", err), tx.Rollback())
	}
	if !w.changed {
		return tx.Rollback()
	}
	failpoint.Reach("store-committing")
	if err := tx.Commit(); err != nil {
		return c.commitFailed(w, err)
	}
	failpoint.Reach("store-committed")
	c.publish(w)
	c.metrics.committed(len(batch), c.clock.Since(began))
	return nil
}

// publish publishes a committed batch: to leases first, then to watchers.
func (c *committer) publish(w *writer) {
	for _, update := range w.committed {
		update()
	}
	c.feed.publish(w.events, w.revision, w.compacted)
}

// commitFailed returns the error for the writers of a batch whose commit failed.
//
// bbolt writes and syncs the data pages before it writes the meta page. Until the new
// meta page is in the file the commit has left nothing: bbolt has rolled back, the pages that
// it wrote are free, and whatever uses them next writes them again. Later commits are safe.
//
// If the new meta page is in the file, only its sync has failed. Readers see the commit, so
// it is published, but a power loss may take it back, and another commit could then destroy
// the state before it. The engine refuses writes until the file is opened again, which
// makes the meta page durable first.
func (c *committer) commitFailed(w *writer, cause error) error {
	err := fmt.Errorf("committing: %w", cause)
	visible := false
	viewErr := c.db.View(func(tx *bbolt.Tx) error {
		visible = tx.ID() >= w.transactionID
		return nil
	})
	if viewErr == nil && !visible {
		return asDiskFull(err)
	}
	if visible {
		c.publish(w)
	}
	return c.refuseWrites(errors.Join(err, viewErr))
}

// refuseWrites makes every later write fail, and returns the error that they fail with.
func (c *committer) refuseWrites(cause error) error {
	failure := fmt.Errorf("store refuses writes until it is reopened, because a commit may be lost: %w", cause)
	c.failure.Store(&failure)
	c.logger.Error(cause, "The store refuses writes until it is reopened")
	return failure
}
