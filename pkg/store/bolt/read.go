// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// query selects the keys of a span.
type query struct {
	span
	// revision is the revision to read at, 0 for the current one.
	revision int64
	// limit bounds the number of keys, bytes the memory of the result; 0 means no bound. A byte bound never makes a
	// result empty.
	limit int64
	bytes int
	// keysOnly leaves values out, countOnly keys as well.
	keysOnly, countOnly bool
}

// page is the result of a query.
type page struct {
	kvs []*mvccpb.KeyValue
	// count is the number of keys in the span, whatever the bounds.
	count int64
	// more reports whether a bound truncated the result.
	more bool
}

// read runs a query. The result shares no memory with the transaction.
func (s snapshot) read(q query) (page, error) {
	if err := s.checkRevision(q.revision); err != nil {
		return page{}, err
	}
	revision, past := s.revision, []pastKey(nil)
	if q.revision != 0 && q.revision != s.revision {
		revision = q.revision
		var err error
		if past, err = s.past(q.span, revision); err != nil {
			return page{}, err
		}
	}
	if q.countOnly {
		return page{count: s.countOf(q, revision, past)}, nil
	}
	p, err := s.collect(q, past)
	if err != nil {
		return page{}, err
	}
	if p.more {
		p.count = s.countOf(q, revision, past)
		s.rememberRemaining(q, revision, p)
	}
	return p, nil
}

// checkRevision returns an error if a revision cannot be read.
func (s snapshot) checkRevision(revision int64) error {
	switch {
	case revision > s.revision:
		return rpctypes.ErrFutureRev
	case revision > 0 && revision < s.compacted:
		return rpctypes.ErrCompacted
	default:
		return nil
	}
}

// collect copies keys until a bound is reached.
func (s snapshot) collect(q query, past []pastKey) (page, error) {
	var p page
	size := 0
	err := s.walk(q.span, past, func(key, record []byte, kv *mvccpb.KeyValue) (bool, error) {
		full := q.limit > 0 && int64(len(p.kvs)) >= q.limit || q.bytes > 0 && size >= q.bytes
		if full {
			p.more = true
			return false, nil
		}
		if kv == nil {
			kv = readState(key, record, !q.keysOnly)
		} else if q.keysOnly {
			kv.Value = nil
		}
		p.kvs = append(p.kvs, kv)
		size += len(kv.Key) + len(kv.Value)
		return true, nil
	})
	p.count = int64(len(p.kvs))
	return p, err
}

// walk visits the keys of a span in order, with past laid over the current
// state, until visit returns false. A key comes either with its record, which is
// memory of the transaction, or with its past state.
func (s snapshot) walk(sp span, past []pastKey, visit func(key, record []byte, kv *mvccpb.KeyValue) (bool, error)) error {
	cursor := s.keys.Cursor()
	key, record := cursor.Seek(sp.start)
	for {
		if key != nil && !sp.before(key) {
			key = nil
		}
		goOn, err := true, error(nil)
		switch {
		case len(past) > 0 && (key == nil || bytes.Compare(past[0].key, key) <= 0):
			if bytes.Equal(past[0].key, key) {
				key, record = cursor.Next()
			}
			if past[0].was != nil {
				goOn, err = visit(past[0].key, nil, past[0].was)
			}
			past = past[1:]
		case key != nil:
			goOn, err = visit(key, record, nil)
			key, record = cursor.Next()
		default:
			return nil
		}
		if err != nil || !goOn {
			return err
		}
	}
}

// pastKey is a key that has changed since the revision that is being read.
type pastKey struct {
	key []byte
	// was is the state of the key at the revision, nil if it did not exist.
	was *mvccpb.KeyValue
	// exists reports whether the key exists now.
	exists bool
}

// past returns the keys of a span that have changed since a revision, in order. The log record of the first change of a
// key after the revision has its state at the revision.
func (s snapshot) past(sp span, revision int64) ([]pastKey, error) {
	var past []pastKey
	seen := map[string]struct{}{}
	err := s.changes(revision+1, func(changed int64, record []byte) (bool, error) {
		key, err := eventKey(record)
		if err != nil || !sp.contains(key) {
			return true, err
		}
		if _, found := seen[string(key)]; found {
			return true, nil
		}
		event, err := decodeEvent(changed, record)
		if err != nil {
			return false, err
		}
		seen[string(key)] = struct{}{}
		past = append(past, pastKey{key: event.Kv.Key, was: event.PrevKv, exists: s.keys.Get(key) != nil})
		return true, nil
	})
	slices.SortFunc(past, func(a, b pastKey) int { return bytes.Compare(a.key, b.key) })
	return past, err
}

// lookup returns the current state of a key, nil if it does not exist.
func (s snapshot) lookup(key []byte) *mvccpb.KeyValue {
	record := s.keys.Get(key)
	if record == nil {
		return nil
	}
	return readState(key, record, true)
}

// readState decodes a state record. A record that cannot be decoded must not fail every list that includes it: it is
// returned as a key of the first revision, whose value is the whole record. That value cannot be decrypted or decoded, so
// that its readers can identify the key and remove it.
func readState(key, record []byte, withValue bool) *mvccpb.KeyValue {
	kv, err := decodeState(key, record, withValue)
	if err != nil {
		kv = &mvccpb.KeyValue{Key: bytes.Clone(key), CreateRevision: firstRevision, ModRevision: firstRevision, Version: 1}
		if withValue {
			kv.Value = bytes.Clone(record)
		}
	}
	return kv
}
