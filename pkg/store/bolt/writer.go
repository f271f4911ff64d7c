// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// writer applies mutations to one write transaction. Later mutations see what
// earlier ones wrote.
type writer struct {
	snapshot
	// terms are the committed leases.
	terms         *leaseTable
	meta          *bbolt.Bucket
	transactionID int

	// segment is the bucket of the log that segmentID names, nil before the first change.
	segment   *bbolt.Bucket
	segmentID int64

	// pending is the number of changes that the running mutation has made so far.
	// They share the revision after snapshot.revision, which endMutation makes current.
	pending uint32

	// changed reports whether there is anything to commit.
	changed bool
	// events are the changes of keys so far, in order.
	events []*mvccpb.Event
	// committed are functions that run after the commit. They do not run if it fails.
	committed []func()
}

func newWriter(terms *leaseTable, tx *bbolt.Tx) *writer {
	return &writer{
		snapshot:      newSnapshot(tx),
		terms:         terms,
		meta:          tx.Bucket(bucketMeta),
		transactionID: tx.ID(),
	}
}

// apply runs a batch in order. An error means that the transaction is damaged; an error of a single request is stored in
// that request.
func (w *writer) apply(batch []*request) error {
	for _, r := range batch {
		if r.err = r.check(w); r.err != nil {
			continue
		}
		if err := r.write(w); err != nil {
			return err
		}
		w.endMutation()
	}
	if !w.changed {
		return nil
	}
	return w.putRevisions()
}

// putRevisions writes the revisions after a batch.
func (w *writer) putRevisions() error {
	return errors.Join(
		w.meta.Put(metaCompacted, putInt64(w.compacted)),
		w.meta.Put(metaRevision, putInt64(w.revision)),
	)
}

// endMutation makes the revision of a mutation the current one if it changed a key.
func (w *writer) endMutation() {
	if w.pending == 0 {
		return
	}
	w.revision = w.current()
	w.pending = 0
}

// current returns the revision as the running mutation sees it.
func (w *writer) current() int64 {
	if w.pending > 0 {
		return w.revision + 1
	}
	return w.revision
}

// now returns the store as the running mutation sees it.
func (w *writer) now() snapshot {
	s := w.snapshot
	s.revision = w.current()
	return s
}

// put sets a key. previous is its current state, nil if it does not exist.
func (w *writer) put(key, value []byte, lease int64, previous *mvccpb.KeyValue) error {
	w.changed = true
	kv := &mvccpb.KeyValue{
		Key: key, Value: value, Lease: lease,
		ModRevision: w.revision + 1, CreateRevision: w.revision + 1, Version: 1,
	}
	if previous != nil {
		kv.CreateRevision, kv.Version = previous.CreateRevision, previous.Version+1
	}
	if err := w.keys.Put(key, appendState(nil, kv)); err != nil {
		return fmt.Errorf("putting key %q: %w", key, err)
	}
	if previous == nil {
		if err := w.addToCounts(key, 1); err != nil {
			return err
		}
	}
	if err := w.moveLease(key, previous.GetLease(), lease); err != nil {
		return err
	}
	return w.record(&mvccpb.Event{Type: mvccpb.Event_PUT, Kv: kv, PrevKv: previous})
}

// remove deletes a key whose current state is previous.
func (w *writer) remove(previous *mvccpb.KeyValue) error {
	key := previous.Key
	w.changed = true
	if err := w.keys.Delete(key); err != nil {
		return fmt.Errorf("deleting key %q: %w", key, err)
	}
	if err := w.addToCounts(key, -1); err != nil {
		return err
	}
	if err := w.moveLease(key, previous.Lease, 0); err != nil {
		return err
	}
	kv := &mvccpb.KeyValue{Key: key, ModRevision: w.revision + 1}
	return w.record(&mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: kv, PrevKv: previous})
}

// moveLease detaches a key from one lease and attaches it to another; 0 is none.
func (w *writer) moveLease(key []byte, from, to int64) error {
	if from == to {
		return nil
	}
	if from != 0 {
		if err := w.leaseKeys.Delete(leaseKey(from, key)); err != nil {
			return fmt.Errorf("detaching key %q from lease %x: %w", key, from, err)
		}
	}
	if to != 0 {
		if err := w.leaseKeys.Put(leaseKey(to, key), nil); err != nil {
			return fmt.Errorf("attaching key %q to lease %x: %w", key, to, err)
		}
	}
	return nil
}
