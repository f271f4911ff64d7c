// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

const (
	// queueLength is how many writers may wait before the next one blocks.
	queueLength = 1024

	// maxBatchBytes bounds what is committed at once, and with it the memory of a
	// transaction. A batch holds at least one request, whatever its size.
	maxBatchBytes = 16 << 20
)

// mutation is one atomic change of the store.
type mutation interface {
	// check decides whether the change can be made. It writes nothing, so an error
	// concerns this change alone.
	check(w *writer) error

	// write makes the change. An error here means that the transaction is damaged:
	// nothing of the batch is committed.
	write(w *writer) error
}

// request is a mutation on its way through the committer.
type request struct {
	mutation
	size int
	err  error
	done chan struct{}
}

// commit queues a change and waits until it is on disk or refused. When ctx ends
// first the outcome is unknown, as it is with etcd, and the change is the
// committer's: only after a nil error may the caller read it.
func (e *Engine) commit(ctx context.Context, change mutation, size int) error {
	if size > e.options.MaxRequestBytes {
		return rpctypes.ErrRequestTooLarge
	}
	if err := e.usable(ctx); err != nil {
		return err
	}
	r := &request{mutation: change, size: size, done: make(chan struct{})}
	select {
	case e.queue <- r:
	case <-e.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	case <-e.stopped:
		return r.outcome()
	}
}

// outcome is the answer to a request once the committer has ended: it took the
// request and answered it, or never will.
func (r *request) outcome() error {
	select {
	case <-r.done:
		return r.err
	default:
		return ErrClosed
	}
}

func (e *Engine) commitLoop() {
	defer close(e.stopped)
	for {
		select {
		case first := <-e.queue:
			e.commitBatch(e.gather(first))
		case err := <-e.durable.done:
			e.endCheckpoint(err)
		case <-e.stop:
			return
		}
	}
}

// gather takes what is queued behind first, without waiting for more.
func (e *Engine) gather(first *request) []*request {
	batch, size := []*request{first}, first.size
	for size < maxBatchBytes {
		select {
		case r := <-e.queue:
			batch = append(batch, r)
			size += r.size
		default:
			return batch
		}
	}
	return batch
}

// commitBatch applies a batch in one transaction and answers its requests.
func (e *Engine) commitBatch(batch []*request) {
	refused := e.failure.Load() != nil
	err := e.apply(batch)
	if err != nil {
		e.metrics.failed(len(batch), err, refused)
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
	e.space.ended(size, err)
	for _, r := range batch {
		close(r.done)
	}
}

// apply makes a batch durable and then visible: it is applied to a transaction that
// nobody sees, appended to the journal, which is the one sync that it costs, and committed
// to pages that are synced with the next checkpoint.
func (e *Engine) apply(batch []*request) error {
	if failure := e.failure.Load(); failure != nil {
		return *failure
	}
	began := e.options.Clock.Now()
	tx, err := e.db.Begin(true)
	if err != nil {
		return fmt.Errorf("beginning a write: %w", err)
	}
	w := newWriter(e, tx)
	if err := w.apply(batch); err != nil {
		return errors.Join(fmt.Errorf("writing: %w", err), tx.Rollback())
	}
	if !w.changed {
		return tx.Rollback()
	}
	if e.durable.journal == nil {
		// The transaction began in a file that needs no journal, and would say so.
		if err := errors.Join(tx.Rollback(), e.startJournal()); err != nil {
			return asDiskFull(err)
		}
		return e.apply(batch)
	}
	if err := e.commitDurably(tx, w); err != nil {
		return err
	}
	e.metrics.committed(len(batch), e.options.Clock.Since(began))
	return nil
}

func (e *Engine) commitDurably(tx *bbolt.Tx, w *writer) error {
	if err := e.durable.journal.Append(w.entry); err != nil {
		return e.appendFailed(errors.Join(err, tx.Rollback()))
	}
	failpoint.Reach("entry-appended")
	size := tx.Size()
	if err := tx.Commit(); err != nil {
		return e.commitFailed(w, err)
	}
	failpoint.Reach("entry-committed")
	e.publish(w)
	e.keepEntryBuffer(w.entry)
	e.checkpointIfDue(size)
	return nil
}

// publish makes a committed batch known: to leases first, then to watchers.
func (e *Engine) publish(w *writer) {
	for _, update := range w.committed {
		update()
	}
	e.feed.publish(w.events, w.revision, w.compacted)
}

// keptBufferBytes bounds the memory that is kept for the next entry.
const keptBufferBytes = 1 << 20

func (e *Engine) keepEntryBuffer(entry []byte) {
	if cap(entry) <= keptBufferBytes {
		e.entryBuffer = entry
	}
}

// appendFailed turns a failed append to the journal into the answer to its writers.
// Nothing of the batch was kept, unless it was the sync that failed: then the next
// process may find it in the journal.
func (e *Engine) appendFailed(err error) error {
	if errors.Is(err, journal.ErrSync) {
		return e.refuseWrites(err)
	}
	return asDiskFull(err)
}

// commitFailed turns a failed commit of a batch that is in the journal into the answer
// to its writers. bbolt rolls back what it could not write, and the journal's
// entry is taken back. When that fails, or when the transaction is visible all the same, the batch is
// there when the file is opened anew; it is then published if readers see
// it, and the engine refuses writes from there on.
func (e *Engine) commitFailed(w *writer, cause error) error {
	err := asDiskFull(fmt.Errorf("committing: %w", cause))
	visible := false
	viewErr := e.db.View(func(tx *bbolt.Tx) error {
		visible = tx.ID() >= w.transactionID
		return nil
	})
	if viewErr == nil && !visible {
		if cutErr := e.durable.journal.Cut(); cutErr != nil {
			return e.refuseWrites(errors.Join(err, cutErr))
		}
		// What the last checkpoint keeps from being used again may be all the space there is.
		e.beginCheckpoint()
		return err
	}
	if visible {
		e.publish(w)
	}
	return e.refuseWrites(errors.Join(err, viewErr))
}

// refuseWrites makes every later write fail, and returns the error that they fail with.
func (e *Engine) refuseWrites(cause error) error {
	failure := fmt.Errorf("store refuses writes until it is opened anew, a commit may be lost: %w", cause)
	e.failure.Store(&failure)
	e.logger.Error(cause, "The store refuses writes until it is opened anew")
	return failure
}
