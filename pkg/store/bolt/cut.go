// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// View is a store at one point in time. The engine continues to write meanwhile, but the file keeps the pages that the
// view may still read. Engine.Close waits until the view is closed.
type View struct {
	tx *bbolt.Tx
	FileState
}

// FileState is the state recorded in a store file.
type FileState struct {
	// Identity identifies the store uniquely.
	Identity uint64
	// Revision is the last revision that was handed out, CompactRevision the oldest that can be read.
	Revision, CompactRevision int64
	// Size is the size of a copy of the file, in bytes.
	Size int64
}

// Cut takes views of stores at the same point in time: if a client writes to one store after its write to another was
// acknowledged, the views have both writes, only the first, or none. Writers wait until all stores are between two
// commits, which takes as long as the longest commit in progress. Concurrent cuts must name the stores in the same order.
//
// Every view must be closed.
func Cut(engines ...*Engine) (views []*View, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, CloseViews(views))
		}
	}()
	for _, e := range engines {
		// A write transaction that writes nothing keeps the committer between two batches.
		pause, err := e.db.Begin(true)
		if err != nil {
			return views, beginFailed(err)
		}
		defer func() { _ = pause.Rollback() }() // It fails only for a transaction that has ended.
	}
	for _, e := range engines {
		tx, err := e.db.Begin(false)
		if err != nil {
			return views, beginFailed(err)
		}
		views = append(views, &View{tx: tx, FileState: stateOf(tx)})
	}
	return views, nil
}

func beginFailed(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return fmt.Errorf("beginning to read: %w", err)
}

// stateOf reads the state of a file whose schema has been checked.
func stateOf(tx *bbolt.Tx) FileState {
	s := newSnapshot(tx)
	return FileState{
		Identity: binary.BigEndian.Uint64(tx.Bucket(bucketMeta).Get(metaIdentity)),
		Revision: s.revision, CompactRevision: s.compacted, Size: tx.Size(),
	}
}

// WriteTo writes a store file of the view's Size.
func (v *View) WriteTo(w io.Writer) (int64, error) {
	n, err := v.tx.WriteTo(w)
	if err != nil {
		return n, fmt.Errorf("copying store %s: %w", v.tx.DB().Path(), err)
	}
	return n, nil
}

// Close releases the view.
func (v *View) Close() error { return v.tx.Rollback() }

// CloseViews closes all views.
func CloseViews(views []*View) error {
	var errs []error
	for _, v := range views {
		errs = append(errs, v.Close())
	}
	return errors.Join(errs...)
}
