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

// difference is a key that two views do not have in common. What a view does not have is nil.
type difference struct {
	from, to *mvccpb.KeyValue
	// floor is the view's.
	floor int64
}

// key is the key that differs.
func (d difference) key() []byte {
	if d.from != nil {
		return d.from.Key
	}
	return d.to.Key
}

// missing tells whether the difference is that the target does not have the key.
func (d difference) missing() bool { return d.to == nil }

// equal tells whether both have the key with its value, and a lease or none.
func (d difference) equal() bool {
	return d.from != nil && d.to != nil && bytes.Equal(d.from.Value, d.to.Value) && (d.from.Lease == 0) == (d.to.Lease == 0)
}

// stale tells whether the target has the key under a revision that the source may have
// given to something else.
func (d difference) stale() bool { return d.equal() && d.to.ModRevision <= d.floor }

// compare walks two views side by side and visits what differs: keys that only one
// has, other values, a lease where there is none or the other way round, and stale
// revisions. Both digests get what their side holds for good.
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

// take is the next key of a view, nil at its end.
func take(next func() (*mvccpb.KeyValue, error, bool)) (*mvccpb.KeyValue, error) {
	kv, err, _ := next()
	return kv, err
}

// pair is the lower of two keys, or both if they are the same.
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

// Digest sums up what a side holds, less the keys that go by themselves.
type Digest struct {
	// Keys is the number of all keys, those with a lease included.
	Keys int64
	// Bytes is the size of all keys and values.
	Bytes int64
	// Sum is the SHA-256 of the keys without a lease and their values, in order.
	Sum [sha256.Size]byte
}

// sides sums up both sides of a comparison.
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

// tally is a digest that is being made.
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
