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

// replayBytes is how much of the journal one transaction makes again.
const replayBytes = 8 << 20

// replay brings a file that was put back to its last checkpoint up to the end of
// its journal. The file is complete when it returns.
func (e *Engine) replay() error {
	r := e.durable.file.recovered
	if r == nil {
		return nil
	}
	e.logger.Info("The store was not closed", "entries", r.Len())
	// What the pages of the checkpoint hold must stay until all of the journal is in the file.
	cp, err := e.pinState()
	if err != nil {
		return errors.Join(err, r.Close())
	}
	if r.Store != cp.Store || r.Sequence != cp.Sequence {
		return errors.Join(fmt.Errorf("%w: it is that of another store", journal.ErrDamaged), cp.pin.Rollback(), r.Close())
	}
	replayed := &replayer{engine: e}
	err = r.Replay(replayed.add)
	if err == nil {
		err = replayed.commit()
	}
	if err == nil {
		failpoint.Reach("store-replayed")
		err = e.durable.file.close()
	}
	return errors.Join(asDiskFull(err), replayed.discard(), cp.pin.Rollback(), r.Close())
}

// replayer makes entries of the journal again, many in a transaction.
type replayer struct {
	engine *Engine
	tx     *bbolt.Tx
	writer *writer
	bytes  int
}

func (r *replayer) add(_ uint64, entry []byte) (err error) {
	if r.tx == nil {
		if r.tx, err = r.engine.db.Begin(true); err != nil {
			return fmt.Errorf("beginning a write: %w", err)
		}
		r.writer = newWriter(r.engine, r.tx)
	}
	if err := r.writer.replay(entry); err != nil {
		return err
	}
	r.writer.entry, r.writer.events = r.writer.entry[:0], nil // Nobody needs them twice.
	if r.bytes += len(entry); r.bytes < replayBytes {
		return nil
	}
	return r.commit()
}

func (r *replayer) commit() error {
	if r.tx == nil {
		return nil
	}
	err := r.tx.Commit()
	r.tx, r.writer, r.bytes = nil, nil, 0
	if err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	failpoint.Reach("store-replaying")
	return nil
}

// discard ends a transaction that was not committed.
func (r *replayer) discard() error {
	if r.tx == nil {
		return nil
	}
	return r.tx.Rollback()
}
