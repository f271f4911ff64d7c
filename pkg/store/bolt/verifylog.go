// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// logWalk is the progress of checking the log.
type logWalk struct {
	*verifier
	// revision and sub are those of the last record, oldest is the revision of the first.
	revision, oldest int64
	sub              uint32
	records          int64
}

// verifyLog checks that the log has every revision since the compacted one, that each record can be decoded, and that the
// previous state in a record is the one that the record before left.
func (v *verifier) verifyLog() error {
	w := &logWalk{verifier: v}
	err := v.log.ForEach(func(id, value []byte) error {
		if len(id) != 8 || value != nil {
			v.found(bucketLog, string(id), "not a segment")
			return nil
		}
		return v.log.Bucket(id).ForEach(func(key, record []byte) error {
			w.records++
			w.verifyRecord(getInt64(id), key, record)
			return v.to.step(v.ctx, string(bucketLog), w.records)
		})
	})
	if last := w.expected() - 1; last < v.revision {
		v.found(bucketLog, revisionRange(last+1, v.revision), "missing, the current revision is %d", v.revision)
	}
	return err
}

// expected returns the lowest revision that must still follow.
func (w *logWalk) expected() int64 {
	return max(w.revision, w.compacted, firstRevision) + 1
}

func (w *logWalk) verifyRecord(segment int64, key, record []byte) {
	if len(key) != 12 {
		w.found(bucketLog, string(key), "the record's name is %d bytes long, must be 12", len(key))
		return
	}
	revision, sub := getInt64(key), binary.BigEndian.Uint32(key[8:])
	name := fmt.Sprintf("%d.%d", revision, sub)
	if revision/segmentRevisions != segment {
		w.found(bucketLog, name, "in segment %d, belongs to %d", segment, revision/segmentRevisions)
	}
	w.verifyOrder(name, revision, sub)
	event, err := decodeEvent(revision, record)
	if err != nil {
		w.found(bucketLog, name, "%v", err)
		return
	}
	w.verifyChange(name, event)
}

// verifyOrder checks that no revision and no change within one is missing.
func (w *logWalk) verifyOrder(name string, revision int64, sub uint32) {
	if expected := w.expected(); revision > w.revision && revision > expected {
		w.found(bucketLog, revisionRange(expected, revision-1), "missing, the next one is %d", revision)
	}
	wantSub := uint32(0)
	if revision == w.revision {
		wantSub = w.sub + 1
	}
	if sub != wantSub {
		w.found(bucketLog, name, "the changes of the revision are not numbered without a gap: %d should be next", wantSub)
	}
	if revision > w.verifier.revision {
		w.found(bucketLog, name, "beyond the current revision, %d", w.verifier.revision)
	}
	if w.oldest == 0 {
		w.oldest = revision
	}
	w.revision, w.sub = revision, sub
}

// verifyChange checks a change against the one before it of the same key.
func (w *logWalk) verifyChange(name string, event *mvccpb.Event) {
	key := string(event.Kv.Key)
	before, known := w.newest[key]
	w.verifyPrevious(name, event, before, known && !before.deleted, known)
	if event.Type == mvccpb.Event_DELETE {
		w.newest[key] = keyState{deleted: true, revision: event.Kv.ModRevision}
		return
	}
	w.verifyLife(bucketLog, name, event.Kv)
	w.verifyContinued(name, event)
	w.newest[key] = w.stateOf(event.Kv)
}

// verifyPrevious checks the previous state of the key in a record. existed reports whether the key existed according to
// the log, and known whether the log has a change of it.
func (w *logWalk) verifyPrevious(name string, event *mvccpb.Event, before keyState, existed, known bool) {
	previous := event.PrevKv
	switch {
	case previous == nil && event.Type == mvccpb.Event_DELETE:
		w.found(bucketLog, name, "deletes %q, which did not exist", event.Kv.Key)
	case previous == nil && existed:
		w.found(bucketLog, name, "creates %q, which existed after revision %d", event.Kv.Key, before.revision)
	case previous == nil:
	case known && !existed:
		w.found(bucketLog, name, "changes %q, which revision %d had deleted", event.Kv.Key, before.revision)
	case known && w.stateOf(previous) != before:
		w.found(bucketLog, name, "the previous value of %q differs from that of revision %d: %s",
			event.Kv.Key, before.revision, w.stateOf(previous).difference(before))
	case !known && previous.ModRevision >= w.oldest:
		w.found(bucketLog, name, "the previous value of %q was written at revision %d, which is not in the log",
			event.Kv.Key, previous.ModRevision)
	}
}

// verifyContinued checks that a put continues from the previous state.
func (w *logWalk) verifyContinued(name string, event *mvccpb.Event) {
	create, version := event.Kv.ModRevision, int64(1)
	if event.PrevKv != nil {
		create, version = event.PrevKv.CreateRevision, event.PrevKv.Version+1
	}
	if event.Kv.CreateRevision != create || event.Kv.Version != version {
		w.found(bucketLog, name, "puts %q as version %d, created at %d; must be version %d, created at %d",
			event.Kv.Key, event.Kv.Version, event.Kv.CreateRevision, version, create)
	}
}

// revisionRange returns a description of the revisions from first to last.
func revisionRange(first, last int64) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}
