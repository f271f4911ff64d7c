// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

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
