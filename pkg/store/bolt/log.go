// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// segmentRevisions is how many revisions share a bucket of the log. Deleting
// records one by one in a large transaction costs bbolt quadratic time; dropping
// a bucket costs the time to walk its pages.
const segmentRevisions = 1000

// appendFill is how full bbolt leaves a page of a bucket that only grows at its end.
const appendFill = 0.95

// logKey names a change: the transaction's revision and the change's place in it.
func logKey(revision int64, sub uint32) []byte {
	return binary.BigEndian.AppendUint32(putInt64(revision), sub)
}

// record appends a change of the running mutation to the log.
func (w *writer) record(event *mvccpb.Event) error {
	revision := event.Kv.ModRevision
	if err := w.openSegment(revision / segmentRevisions); err != nil {
		return err
	}
	if err := w.segment.Put(logKey(revision, w.pending), appendEvent(nil, event)); err != nil {
		return fmt.Errorf("logging revision %d: %w", revision, err)
	}
	w.pending++
	w.events = append(w.events, event)
	return nil
}

func (w *writer) openSegment(id int64) error {
	if w.segment != nil && w.segmentID == id {
		return nil
	}
	segment, err := w.log.CreateBucketIfNotExists(putInt64(id))
	if err != nil {
		return fmt.Errorf("opening log segment %d: %w", id, err)
	}
	segment.FillPercent = appendFill
	w.segment, w.segmentID = segment, id
	return nil
}

// changes visits the log from a revision on, until visit returns false. The
// record is memory of the transaction.
func (s snapshot) changes(from int64, visit func(revision int64, record []byte) (bool, error)) error {
	segments := s.log.Cursor()
	for id, _ := segments.Seek(putInt64(from / segmentRevisions)); id != nil; id, _ = segments.Next() {
		records := s.log.Bucket(id).Cursor()
		for key, record := records.Seek(putInt64(from)); key != nil; key, record = records.Next() {
			if goOn, err := visit(getInt64(key), record); err != nil || !goOn {
				return err
			}
		}
	}
	return nil
}

// dropSegments removes the oldest segments that hold nothing but compacted
// revisions, at most limit of them, and tells how many it removed.
func (w *writer) dropSegments(limit int) (dropped int, err error) {
	for _, id := range w.obsoleteSegments(limit) {
		if err := w.dropSegment(id); err != nil {
			return dropped, err
		}
		dropped++
	}
	return dropped, nil
}

func (w *writer) dropSegment(id int64) error {
	w.changed = true
	if err := w.log.DeleteBucket(putInt64(id)); err != nil {
		return fmt.Errorf("dropping log segment %d: %w", id, err)
	}
	if w.segmentID == id {
		w.segment = nil // A later change of the batch begins it anew.
	}
	return nil
}

// obsoleteSegments names them first: a cursor must not be moved over a bucket
// that is being changed. When everything is compacted the last segment is among them:
// a store that is at rest keeps nothing of what it went through.
func (w *writer) obsoleteSegments(limit int) (ids []int64) {
	segments := w.log.Cursor()
	for id, _ := segments.First(); id != nil && len(ids) < limit; id, _ = segments.Next() {
		last := min((getInt64(id)+1)*segmentRevisions-1, w.current())
		if last > w.compacted {
			break
		}
		ids = append(ids, getInt64(id))
	}
	return ids
}
