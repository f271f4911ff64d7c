// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// model is a store that keeps the state of every revision.
type model struct {
	states map[int64]map[string]string
	head   int64
}

func newModel() *model {
	return &model{head: 1, states: map[int64]map[string]string{1: {}}}
}

func (m *model) change(change func(state map[string]string)) {
	state := maps.Clone(m.states[m.head])
	change(state)
	m.head++
	m.states[m.head] = state
}

// keys returns the sorted keys of a range at a revision.
func (m *model) keys(revision int64, start, end string) (keys []string) {
	for key := range m.states[revision] {
		if key >= start && key < end {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// TestHistoryAgainstModel applies the same changes to an engine and to a model, with compactions and restarts, and compares
// reads at random revisions.
func TestHistoryAgainstModel(t *testing.T) {
	const changes = 2600 // more than two segments of the log
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "store.db")
	e, m, compacted := reopen(t, path), newModel(), int64(0)
	for i := range changes {
		changeBoth(t, random, e, m)
		if random.IntN(10) == 0 {
			compareReads(t, random, e, m, max(1, compacted))
		}
		switch {
		case i%1000 == 700:
			compacted = m.head - random.Int64N(300)
			if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: compacted}); err != nil {
				t.Fatal(err)
			}
			checkCompacted(t, e, compacted)
		case i%1000 == 900:
			closeEngine(t, e)
			e = reopen(t, path)
			checkCompacted(t, e, compacted)
		}
	}
	closeEngine(t, e)
}

var directories = []string{"/", "/a/", "/a/b/", "/a/c/", "/b/", "/a/b/c/d/e/f/g/", ""}

func changeBoth(t *testing.T, random *rand.Rand, e *bolt.Engine, m *model) {
	t.Helper()
	key := directories[random.IntN(len(directories))] + fmt.Sprint(random.IntN(30))
	if _, exists := m.states[m.head][key]; exists && random.IntN(2) == 0 {
		unset(t, e, key)
		m.change(func(state map[string]string) { delete(state, key) })
		return
	}
	value := fmt.Sprint(m.head)
	set(t, e, key, value)
	m.change(func(state map[string]string) { state[key] = value })
}

// compareReads lists a random range at a random revision, in pages of random size.
func compareReads(t *testing.T, random *rand.Rand, e *bolt.Engine, m *model, oldest int64) {
	t.Helper()
	revision := oldest + random.Int64N(m.head-oldest+1)
	start := directories[random.IntN(len(directories))]
	if start == "" {
		start = "/"
	}
	end := clientv3.GetPrefixRangeEnd(start)
	want := m.keys(revision, start, end)
	limit := random.Int64N(int64(len(want)) + 2)
	for from := start; ; {
		page, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte(from), RangeEnd: []byte(end), Revision: revision, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if page.Count != int64(len(want)) || page.Header.Revision != m.head {
			t.Fatalf("%s at %d from %s: count %d at revision %d, want %d at %d", start, revision, from, page.Count, page.Header.Revision,
				len(want), m.head)
		}
		for _, kv := range page.Kvs {
			if string(kv.Key) != want[0] || string(kv.Value) != m.states[revision][want[0]] {
				t.Fatalf("%s at %d: %s=%s, want %s=%s", start, revision, kv.Key, kv.Value, want[0], m.states[revision][want[0]])
			}
			want = want[1:]
		}
		if !page.More {
			break
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
	if len(want) != 0 {
		t.Fatalf("%s at %d: keys %q are missing after the last page", start, revision, want)
	}
}

func checkCompacted(t *testing.T, e *bolt.Engine, revision int64) {
	t.Helper()
	if e.CompactRevision() != revision {
		t.Fatalf("compacted %d, want %d", e.CompactRevision(), revision)
	}
	for at, want := range map[int64]error{
		revision - 1: rpctypes.ErrCompacted, revision: nil, e.Revision(): nil, e.Revision() + 1: rpctypes.ErrFutureRev,
	} {
		if _, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte("/"), Revision: at}); !errors.Is(err, want) {
			t.Fatalf("read at %d of %d..%d: %v, want %v", at, revision, e.Revision(), err, want)
		}
	}
}

func TestCompactErrors(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	for range 9 {
		set(t, e, "/a", "")
	}
	for _, step := range []struct {
		revision int64
		want     error
	}{{11, rpctypes.ErrFutureRev}, {5, nil}, {5, rpctypes.ErrCompacted}, {4, rpctypes.ErrCompacted}, {10, nil}} {
		if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: step.revision}); !errors.Is(err, step.want) {
			t.Errorf("compact to %d: %v, want %v", step.revision, err, step.want)
		}
	}
	if e.Revision() != 10 {
		t.Errorf("compaction changed the revision to %d", e.Revision())
	}
}

// TestCompactionFreesTheLog checks that later history reuses the space of compacted history.
func TestCompactionFreesTheLog(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	client := bolt.NewClient(t.Context(), e)
	value := strings.Repeat("x", 100)
	round := func() int64 {
		for i := range 12 {
			var ops []clientv3.Op
			for k := range bolt.MaxTxnOps {
				ops = append(ops, clientv3.OpPut(fmt.Sprint("/", k), fmt.Sprint(value, i)))
			}
			if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			set(t, e, "/single", value)
		}
		if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: e.Revision()}); err != nil {
			t.Fatal(err)
		}
		status, err := client.Status(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return status.DbSizeInUse
	}
	var sizes []int64
	for range 30 {
		sizes = append(sizes, round())
	}
	if first, last := slices.Max(sizes[:15]), slices.Max(sizes[15:]); last > first+first/2 {
		t.Errorf("data in use grew from %d to %d bytes although all history was compacted", first, last)
	}
}

func TestStreamedRange(t *testing.T) {
	const keys = 2500
	e := openEngine(t, bolt.Options{})
	client := bolt.NewClient(t.Context(), e)
	fill(t, client.Client, keys)
	tests := map[string]struct {
		limit int64
		want  int
		more  bool
	}{
		"all":                    {limit: 0, want: keys},
		"a limit within a chunk": {limit: 10, want: 10, more: true},
		"a limit of a chunk":     {limit: 1000, want: 1000, more: true},
		"a limit beyond a chunk": {limit: 1500, want: 1500, more: true},
		"a limit of all":         {limit: keys, want: keys},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			revision := e.Revision()
			stream, err := client.GetStream(t.Context(), "/k/", clientv3.WithPrefix(), clientv3.WithLimit(test.limit))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var last *pb.RangeResponse
			for chunk := range stream {
				if err := chunk.Err(); err != nil {
					t.Fatal(err)
				}
				if last == nil {
					set(t, e, "/k/000000-later", "") // must not be in the stream
				}
				last = chunk.RangeResponse
				for _, kv := range last.Kvs {
					got = append(got, string(kv.Key))
				}
			}
			unset(t, e, "/k/000000-later")
			if len(got) != test.want || !slices.IsSorted(got) || slices.Contains(got, "/k/000000-later") {
				t.Errorf("streamed %d keys, want %d in order", len(got), test.want)
			}
			if last.Header.GetRevision() != revision || last.Count != keys || last.More != test.more {
				t.Errorf("last chunk: revision %d, count %d, more %v; want %d, %d, %v",
					last.Header.GetRevision(), last.Count, last.More, revision, keys, test.more)
			}
		})
	}
}

// fill writes the given number of keys, starting with /k/000000.
func fill(t testing.TB, client *clientv3.Client, keys int) {
	t.Helper()
	for i := 0; i < keys; {
		var ops []clientv3.Op
		for ; i < keys && len(ops) < bolt.MaxTxnOps; i++ {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("/k/%06d", i), "v"))
		}
		if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStreamOfCompactedRevision(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	client := bolt.NewClient(t.Context(), e)
	fill(t, client.Client, 5000)
	stream, err := client.GetStream(t.Context(), "/k/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	<-stream
	revision := set(t, e, "/k/", "")
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: revision}); err != nil {
		t.Fatal(err)
	}
	var last error
	for chunk := range stream {
		last = chunk.Err()
	}
	if !errors.Is(last, rpctypes.ErrCompacted) {
		t.Errorf("stream returned %v", last)
	}
}

// TestResponsesAreCopies modifies the result of a read and reads again.
func TestResponsesAreCopies(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	set(t, e, "/a", "before")
	for range 2 {
		response, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte("/a")})
		if err != nil {
			t.Fatal(err)
		}
		if got := response.Kvs[0].Value; !bytes.Equal(got, []byte("before")) {
			t.Fatalf("read %q", got)
		}
		copy(response.Kvs[0].Value, "XXXXXX")
	}
}

// TestCompactionLoop checks that history is kept for one compaction interval.
func TestCompactionLoop(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	e := openEngine(t, bolt.Options{Clock: clock, CompactionInterval: time.Minute})
	for interval, want := range []int64{1, 2, 3, 4, 4} {
		// Expiry and compaction must both wait before the clock advances. Once CompactRevision has changed, the engine has
		// also recorded the revision for the next compaction.
		testkit.EventuallyTrue(t, "the engine waits", func() bool { return clock.Waiters() == 2 })
		if interval < 3 {
			set(t, e, "/a", "")
		}
		clock.Step(time.Minute)
		testkit.EventuallyTrue(t, "the compaction", func() bool { return e.CompactRevision() >= want })
		if got := e.CompactRevision(); got != want {
			t.Errorf("compacted %d after interval %d, want %d", got, interval, want)
		}
	}
}
