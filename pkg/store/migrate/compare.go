// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"iter"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// difference is a key that differs between two views. A side that lacks the key is nil.
type difference struct {
	from, to *mvccpb.KeyValue
	// floor is the floor of the target's view.
	floor int64
}

// key returns the key that differs.
func (d difference) key() []byte {
	if d.from != nil {
		return d.from.Key
	}
	return d.to.Key
}

// missing reports whether the target lacks the key.
func (d difference) missing() bool { return d.to == nil }

// equal reports whether both sides have the key with the same value, and both a lease or neither.
func (d difference) equal() bool {
	return d.from != nil && d.to != nil && bytes.Equal(d.from.Value, d.to.Value) && (d.from.Lease == 0) == (d.to.Lease == 0)
}

// stale reports whether the target has the key with a revision that the source may have used for another change.
func (d difference) stale() bool { return d.equal() && d.to.ModRevision <= d.floor }

// compare iterates over two views in key order and visits the differences: keys that only one side has, different values,
// a lease on one side only, and stale revisions. Both sides' digests are updated.
func compare(ctx context.Context, from, to view, sides *sides, visit func(difference) error) error {
	nextFrom, stopFrom := iter.Pull2(from.entries(ctx))
	defer stopFrom()
	nextTo, stopTo := iter.Pull2(to.entries(ctx))
	defer stopTo()
	a, err := take(nextFrom)
	if err != nil {
		return err
	}
	b, err := take(nextTo)
	for ; err == nil && (a != nil || b != nil); sides.step() {
		d := pair(a, b)
		d.floor = to.floor
		sides.add(d)
		if !d.equal() || d.stale() {
			err = visit(d)
		}
		if err == nil && d.from != nil {
			a, err = take(nextFrom)
		}
		if err == nil && d.to != nil {
			b, err = take(nextTo)
		}
	}
	return err
}

// take returns the next key of a view, nil at its end.
func take(next func() (*mvccpb.KeyValue, error, bool)) (*mvccpb.KeyValue, error) {
	kv, err, _ := next()
	return kv, err
}

// pair returns the lower of two keys, or both if they are the same.
func pair(a, b *mvccpb.KeyValue) difference {
	switch {
	case b == nil || a != nil && bytes.Compare(a.Key, b.Key) < 0:
		return difference{from: a}
	case a == nil || bytes.Compare(a.Key, b.Key) > 0:
		return difference{to: b}
	default:
		return difference{from: a, to: b}
	}
}

// Digest summarizes the content of a side, except for keys with a lease, which expire.
type Digest struct {
	// Keys is the number of all keys, including those with a lease.
	Keys int64
	// Bytes is the size of all keys and values.
	Bytes int64
	// Sum is the SHA-256 of the keys without a lease and their values, in order.
	Sum [sha256.Size]byte
}

// sides computes the digests of both sides of a comparison.
type sides struct {
	from, to tally
	// step is called for each key.
	step func()
}

func newSides(step func()) *sides {
	return &sides{from: tally{sum: sha256.New()}, to: tally{sum: sha256.New()}, step: step}
}

func (s *sides) add(d difference) {
	s.from.add(d.from)
	s.to.add(d.to)
}

// tally is a digest under construction.
type tally struct {
	keys, bytes int64
	sum         hash.Hash
}

func (t *tally) add(kv *mvccpb.KeyValue) {
	if kv == nil {
		return
	}
	t.keys++
	t.bytes += int64(len(kv.Key) + len(kv.Value))
	if kv.Lease != 0 {
		return
	}
	for _, part := range [][]byte{kv.Key, kv.Value} {
		_, _ = t.sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // A hash takes everything.
		_, _ = t.sum.Write(part)
	}
}

func (t *tally) digest() Digest {
	d := Digest{Keys: t.keys, Bytes: t.bytes}
	t.sum.Sum(d.Sum[:0])
	return d
}
