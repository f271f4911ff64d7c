// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"errors"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"k8s.io/utils/lru"
)

// rememberedCounts bounds the number of cached counts. A page of a list adds one, and one more if the list reads the current state.
const rememberedCounts = 1024

// reader reads the last committed state of a store. It is safe for concurrent use.
type reader struct {
	db *bbolt.DB
	// remaining caches, for the next page of a paged list, the number of remaining keys.
	remaining *lru.Cache
}

func newReader(db *bbolt.DB) *reader {
	return &reader{db: db, remaining: lru.New(rememberedCounts)}
}

// view runs read on the last committed state. What read keeps must be copied:
// memory of the transaction is invalid once it returns.
func (r *reader) view(read func(snapshot) error) error {
	err := guarded(func() error {
		return r.db.View(func(tx *bbolt.Tx) error {
			s := newSnapshot(tx)
			s.remaining = r.remaining
			return read(s)
		})
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// history reads the changes of a span from a revision on from the log, and returns the revision up to which they are
// complete. It stops at a bound, but never within a revision.
func (r *reader) history(from int64, sp span) (events []*mvccpb.Event, reached int64, err error) {
	err = r.view(func(s snapshot) error {
		if from <= s.compacted {
			return rpctypes.ErrCompacted
		}
		reached = s.revision
		size, last := 0, int64(0)
		return s.changes(from, func(revision int64, record []byte) (bool, error) {
			if revision != last && (len(events) >= catchUpEvents || size >= catchUpBytes) {
				reached = last
				return false, nil
			}
			last = revision
			key, err := eventKey(record)
			if err != nil || !sp.contains(key) {
				return true, err
			}
			event, err := decodeEvent(revision, record)
			if err != nil {
				return false, err
			}
			events = append(events, event)
			size += len(record)
			return true, nil
		})
	})
	return events, reached, err
}

// size returns the size of the file and the bytes of it that hold data.
func (r *reader) size() (total, used int64, err error) {
	err = r.db.View(func(tx *bbolt.Tx) error {
		total = tx.Size()
		used = total - int64(r.db.Stats().FreePageN)*int64(r.db.Info().PageSize)
		return nil
	})
	return total, used, err
}

// path returns the path of the file.
func (r *reader) path() string { return r.db.Path() }
