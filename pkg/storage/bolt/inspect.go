// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Inspect reads a closed store file from end to end and returns what it says about
// itself, or what is wrong with it: its pages, its records, or numbers that
// contradict each other. It changes nothing.
func Inspect(ctx context.Context, path string) (state FileState, err error) {
	db, err := openClosed(path, true)
	if err != nil {
		return state, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bbolt.Tx) error {
		state = stateOf(tx)
		if err := checkPages(tx); err != nil {
			return err
		}
		return newSnapshot(tx).inspect(ctx)
	})
	if err != nil {
		return state, fmt.Errorf("store %s is damaged: %w", path, err)
	}
	return state, nil
}

// checkPages looks at what bbolt made of the file. It returns the first fault: others often follow from it.
func checkPages(tx *bbolt.Tx) (first error) {
	// Reading pages that the file does not have would end the process.
	info, err := os.Stat(tx.DB().Path())
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return fmt.Errorf("it has %d bytes and should have %d", info.Size(), tx.Size())
	}
	for fault := range tx.Check() {
		if first == nil {
			first = fault
		}
	}
	return first
}

// inspect reads every record.
func (s snapshot) inspect(ctx context.Context) error {
	if s.revision < firstRevision || s.compacted < 0 || s.compacted > s.revision {
		return fmt.Errorf("revision %d, compacted %d: %w", s.revision, s.compacted, errCorrupt)
	}
	keys := 0
	for _, part := range []func() error{
		func() error { return s.inspectKeys(ctx, &keys) },
		func() error { return s.inspectLog(ctx) },
		s.inspectLeases,
	} {
		if err := part(); err != nil {
			return err
		}
	}
	if counted := getInt64(s.counts.Get([]byte{'/'})); counted > int64(keys) {
		return fmt.Errorf("%d keys counted, there are %d: %w", counted, keys, errCorrupt)
	}
	return nil
}

func (s snapshot) inspectKeys(ctx context.Context, n *int) error {
	return s.keys.ForEach(func(key, record []byte) error {
		kv, err := decodeState(key, record, false)
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		*n++
		return errors.Join(s.inspectKey(kv), ctx.Err())
	})
}

func (s snapshot) inspectKey(kv *mvccpb.KeyValue) error {
	if kv.ModRevision > s.revision || kv.CreateRevision > kv.ModRevision || kv.Version < 1 {
		return fmt.Errorf("key %q is of revision %d, the store of %d: %w", kv.Key, kv.ModRevision, s.revision, errCorrupt)
	}
	if kv.Lease != 0 && s.leaseKeys.Get(leaseKey(kv.Lease, kv.Key)) == nil {
		return fmt.Errorf("key %q is not among those of its lease %x: %w", kv.Key, kv.Lease, errCorrupt)
	}
	return nil
}

func (s snapshot) inspectLog(ctx context.Context) error {
	last := []byte(nil)
	return s.log.ForEach(func(id, _ []byte) error {
		segment := s.log.Bucket(id)
		if segment == nil {
			return fmt.Errorf("log segment %x: %w", id, errCorrupt)
		}
		return segment.ForEach(func(key, record []byte) error {
			if bytes.Compare(key, last) <= 0 || getInt64(key)/segmentRevisions != getInt64(id) || getInt64(key) > s.revision {
				return fmt.Errorf("log record %x in segment %x: %w", key, id, errCorrupt)
			}
			last = bytes.Clone(key)
			_, err := decodeEvent(getInt64(key), record)
			return errors.Join(err, ctx.Err())
		})
	})
}

func (s snapshot) inspectLeases() error {
	err := s.leases.ForEach(func(id, record []byte) error {
		if ttl, _ := decodeLease(record); ttl == 0 {
			return fmt.Errorf("lease %x: %w", id, errCorrupt)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.leaseKeys.ForEach(func(name, _ []byte) error {
		if len(name) < 8 || s.leases.Get(name[:8]) == nil || s.keys.Get(name[8:]) == nil {
			return fmt.Errorf("attachment %x: %w", name, errCorrupt)
		}
		return nil
	})
}
