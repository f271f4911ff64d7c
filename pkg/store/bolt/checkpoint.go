// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

// When a checkpoint is due. It costs a sync of the file, in the background; what
// there is without one costs memory and disk, and time after a crash.
const (
	// defaultJournalBytes is the size of a file of the journal. Entries take three quarters
	// of it: the next checkpoint is due before they outgrow it.
	defaultJournalBytes = 4 << 20

	// checkpointGrowth is what the file grew by: pages that are in the last checkpoint
	// are not used again before the next.
	checkpointGrowth = 16 << 20

	// checkpointCommits bounds bbolt's list of pages that wait for the next checkpoint,
	// over which it goes at each transaction.
	checkpointCommits = 1000
)

// durability is what makes commits durable: the journal, and the state of the file
// that the journal begins at. It belongs to the committer.
type durability struct {
	file *storeFile

	// journal is nil until the first change.
	journal *journal.Journal

	// pin is a read transaction on the state of the last checkpoint. As long as it
	// is open bbolt does not write to the pages of that state.
	pin *bbolt.Tx

	// commits counts those since the last checkpoint was begun, size is the file's then.
	commits int
	size    int64

	// running is the checkpoint that is being made, nil if none is. Its error comes from done.
	running *checkpoint
	done    chan error
}

// checkpoint is one on its way.
type checkpoint struct {
	pin  *bbolt.Tx
	mark journal.Mark
	journal.Checkpoint
}

// pinState returns the last committed state of the file, pinned. The committer
// calls it between two commits.
func (e *Engine) pinState() (cp checkpoint, err error) {
	state, err := e.durable.file.state()
	if err != nil {
		return cp, err
	}
	if cp.pin, err = e.db.Begin(false); err != nil {
		return cp, fmt.Errorf("pinning a state: %w", err)
	}
	cp.Checkpoint = journal.Checkpoint{
		Store:    e.identity,
		Sequence: uint64(getInt64(cp.pin.Bucket(bucketMeta).Get(metaSequence))),
		State:    state[:],
	}
	return cp, nil
}

// startJournal makes the first checkpoint, of the state that the file was opened
// with, which is on disk.
func (e *Engine) startJournal() error {
	d := &e.durable
	if err := d.file.settle(); err != nil {
		return e.refuseWrites(fmt.Errorf("marking the store as complete: %w", err))
	}
	cp, err := e.pinState()
	if err != nil {
		return err
	}
	if d.journal, err = journal.Create(d.file.options.disk, d.file.path, d.file.options.journalBytes, cp.Checkpoint); err != nil {
		return errors.Join(err, cp.pin.Rollback())
	}
	failpoint.Reach("journal-created")
	d.pin, d.size = cp.pin, cp.pin.Size()
	if err := markJournaled(d.file, metaPage(cp.State)); err != nil {
		return e.refuseWrites(fmt.Errorf("marking the store as journaled: %w", err))
	}
	return nil
}

// checkpointIfDue counts a commit and begins a checkpoint if it is time for one.
func (e *Engine) checkpointIfDue(fileSize int64) {
	d := &e.durable
	d.commits++
	if d.journal.Bytes() >= e.options.journalBytes*3/4 || fileSize-d.size >= checkpointGrowth || d.commits >= checkpointCommits {
		e.beginCheckpoint()
	}
}

// beginCheckpoint begins a checkpoint of what is committed, unless one is running or
// there is nothing new.
func (e *Engine) beginCheckpoint() {
	d := &e.durable
	if d.running != nil || d.commits == 0 {
		return
	}
	cp, err := e.pinState()
	if err != nil {
		e.logger.Error(err, "A checkpoint failed, it is tried again later")
		return
	}
	d.commits, d.size = 0, cp.pin.Size()
	cp.mark = d.journal.Turn()
	d.running = &cp
	e.run(func() { d.done <- e.writeCheckpoint(cp) })
}

// writeCheckpoint makes a pinned state durable and then the one that the journal begins
// at. It runs beside the committer.
func (e *Engine) writeCheckpoint(cp checkpoint) error {
	d := &e.durable
	failpoint.Reach("checkpoint-begun")
	if err := d.file.sync(); err != nil {
		return err
	}
	failpoint.Reach("checkpoint-synced")
	if err := d.journal.WriteCheckpoint(cp.mark, cp.Checkpoint); err != nil {
		return err
	}
	failpoint.Reach("checkpoint-written")
	return nil
}

// endCheckpoint takes the outcome of the running checkpoint. When it failed the one
// before it stays, and with it all entries since.
func (e *Engine) endCheckpoint(err error) {
	d := &e.durable
	cp := d.running
	d.running = nil
	switch {
	case err == nil:
		d.journal.Release(cp.mark)
		cp.pin, d.pin = d.pin, cp.pin
	case !errors.Is(err, journal.ErrSync):
		e.logger.Error(err, "A checkpoint failed, it is tried again later")
	case e.failure.Load() == nil:
		_ = e.refuseWrites(err) // No writer waits for it.
	}
	if err := cp.pin.Rollback(); err != nil {
		e.logger.Error(err, "Releasing a checkpoint failed")
	}
}

// closeDurably ends the journal with everything in the file. Nothing else may use the
// engine. After a failure the journal stays, for whoever opens the file next.
func (e *Engine) closeDurably() error {
	d := &e.durable
	if d.running != nil {
		e.endCheckpoint(<-d.done)
	}
	var errs []error
	if d.pin != nil {
		errs = append(errs, d.pin.Rollback())
	}
	if d.journal != nil {
		errs = append(errs, d.journal.Close())
		if e.failure.Load() == nil {
			errs = append(errs, d.file.close())
		}
	}
	return errors.Join(append(errs, e.db.Close())...)
}
