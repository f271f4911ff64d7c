// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// TestCountsOfPages reads keys page by page, the current state and an old revision in turn, while keys are created, changed and deleted and
// the log is compacted. Each page must have the number of keys from its start on.
func TestCountsOfPages(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	const keys, limit = 200, 7
	random := rand.New(rand.NewPCG(1, 2))
	name := func() string { return fmt.Sprintf("/d/%03d", random.IntN(keys)) }
	for range keys {
		set(t, e, name(), "first")
	}
	set(t, e, "/e", "another directory")
	list := func(start string, revision int64) *pb.RangeResponse {
		t.Helper()
		response, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte(start), RangeEnd: []byte("/d0"), Limit: limit, Revision: revision})
		if err != nil {
			t.Fatal(err)
		}
		all, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte(start), RangeEnd: []byte("/d0"), Revision: response.Header.Revision})
		if revision != 0 {
			all, err = e.Range(t.Context(), &pb.RangeRequest{Key: []byte(start), RangeEnd: []byte("/d0"), Revision: revision})
		}
		if err != nil {
			t.Fatal(err)
		}
		if response.Count != int64(len(all.Kvs)) {
			t.Fatalf("count from %s at revision %d of %d = %d, want %d", start, revision, response.Header.Revision, response.Count, len(all.Kvs))
		}
		return response
	}
	next := func(response *pb.RangeResponse) string { return string(response.Kvs[len(response.Kvs)-1].Key) + "\x00" }
	first := list("/d/", 0)
	for i := range 2000 { // More than are applied to a count.
		set(t, e, name(), fmt.Sprint("many ", i))
	}
	list(next(first), 0)
	for round := range 20 {
		revision := e.Revision()
		current, old := list("/d/", 0), list("/d/", revision)
		for current.More || old.More {
			for range random.IntN(5) {
				if random.IntN(2) == 0 {
					set(t, e, name(), fmt.Sprint("round ", round))
				} else {
					unset(t, e, name())
				}
			}
			if current.More {
				current = list(next(current), 0)
			}
			if old.More {
				old = list(next(old), revision)
			}
		}
		if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: e.Revision()}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCountsWithoutTheLog damages the record of a change between two pages of a list, which does not need it.
func TestCountsWithoutTheLog(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	for i := range 10 {
		set(t, e, fmt.Sprint("/d/", i), "value")
	}
	request := &pb.RangeRequest{Key: []byte("/d/"), RangeEnd: []byte("/d0"), Limit: 4}
	if _, err := e.Range(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	unset(t, e, "/d/9")
	err := e.DB().Update(func(tx *bbolt.Tx) error {
		segment, _ := tx.Bucket([]byte("log")).Cursor().Last()
		records := tx.Bucket([]byte("log")).Bucket(segment)
		last, _ := records.Cursor().Last()
		return records.Put(last, []byte{0xff})
	})
	if err != nil {
		t.Fatal(err)
	}
	request.Key = []byte("/d/3\x00")
	if response, err := e.Range(t.Context(), request); err != nil || response.Count != 5 {
		t.Errorf("count %d, %v, want 5", response.GetCount(), err)
	}
}

// BenchmarkPages reads many keys page by page while other keys are written.
func BenchmarkPages(b *testing.B) {
	e := openEngine(b, bolt.Options{})
	const keys, limit = 20_000, 200
	for i := range keys {
		set(b, e, fmt.Sprintf("/d/%06d", i), "value")
	}
	for b.Loop() {
		for start, more := "/", true; more; {
			response, err := e.Range(b.Context(), &pb.RangeRequest{Key: []byte(start), RangeEnd: []byte("0"), Limit: limit})
			if err != nil {
				b.Fatal(err)
			}
			more, start = response.More, string(response.Kvs[len(response.Kvs)-1].Key)+"\x00"
			set(b, e, "/e", "value")
		}
	}
}
