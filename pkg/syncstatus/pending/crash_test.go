// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	syncstatuspending "github.com/configbutler/slipstream/pkg/syncstatus/pending"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestCrashAtEveryWrite crashes a process before and after each of its writes, and starts another one. Batches are recorded under their
// IDs, as SyncStatuses are.
func TestCrashAtEveryWrite(t *testing.T) {
	for _, responseLost := range []bool{false, true} {
		for write := 1; ; write++ {
			if crashed := crashAt(t, write, responseLost); !crashed {
				if write < 10 {
					t.Fatalf("only %d writes", write)
				}
				break
			}
		}
	}
}

// crashAt crashes a process at a write. It returns false if there are fewer writes.
func crashAt(t *testing.T, write int, responseLost bool) (crashed bool) {
	t.Helper()
	s := newFixture(t)
	s.capacity = 200
	records := &records{fixture: s, batches: map[string]syncstatuspending.Batch{}}
	s.process.Start(write, nil)
	s.process.LoseResponse(responseLost)
	err := runProcess(s, records)
	if err != nil && !errors.Is(err, testkit.ErrDead) {
		t.Fatal(err)
	}
	handed := records.handed
	s.process.Start(0, nil)
	again := s.open()
	if handed != nil {
		// A returned batch that is not done is returned again. One that may be done may be returned again.
		batch, some, err := again.Close(t.Context(), handed.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*handed, batch); !records.finishing && diff != "" {
			t.Errorf("write %d, response lost %v: a different batch after the crash, or none (%v):\n%s", write, responseLost, some, diff)
		}
	}
	if err := records.all(again, "shop", "bank"); err != nil {
		t.Fatal(err)
	}
	if rows := s.rows(); len(rows) > 0 {
		t.Errorf("write %d: rows are left: %v", write, rows)
	}
	if err == nil && !records.resynced["shop"] {
		t.Error("no batch has overflowed")
	}
	return err != nil
}

// runProcess is the work of a process. With 150 objects, each step takes several transactions.
func runProcess(s *fixture, records *records) error {
	i, err := syncstatuspending.Open(s.Context(), s.table(), syncstatuspending.Config{Clock: s.clock, Capacity: s.capacity})
	if err != nil {
		return err
	}
	i.Add(manyEvents("shop", 150)...)
	i.Add(changed("bank", "web", 1))
	if err := records.next(i, "shop", func() {
		i.Add(manyEvents("shop", 45)...)
		i.Add(changed("bank", "web", 2))
	}); err != nil {
		return err
	}
	if err := records.all(i, "bank"); err != nil {
		return err
	}
	i.Add(manyEvents("bank", 100)...)
	i.Add(manyEvents("shop", 150)...)
	return records.all(i, "shop", "bank")
}

// records are the recorded batches, which outlive a process.
type records struct {
	*fixture
	batches  map[string]syncstatuspending.Batch
	resynced map[string]bool
	// handed is the batch that is being recorded. finishing is true once Done has been called.
	handed    *syncstatuspending.Batch
	finishing bool
}

// next records one batch, and calls meanwhile before it is done.
func (r *records) next(of *syncstatuspending.Intake, namespace string, meanwhile func()) error {
	batch, some, err := of.Close(r.Context(), namespace)
	if err != nil || !some {
		return err
	}
	r.handed, r.finishing = &batch, false
	if before, there := r.batches[batch.ID]; there {
		if diff := cmp.Diff(before, batch); diff != "" {
			r.Errorf("batch %s is another the second time:\n%s", batch.ID, diff)
		}
	}
	r.batches[batch.ID] = batch
	if batch.Resync {
		if r.resynced == nil {
			r.resynced = map[string]bool{}
		}
		r.resynced[namespace] = true
	}
	meanwhile()
	r.finishing = true
	if err := of.Done(r.Context(), batch); err != nil {
		return err
	}
	r.handed = nil
	return nil
}

// all records all batches of namespaces.
func (r *records) all(of *syncstatuspending.Intake, namespaces ...string) error {
	for _, namespace := range namespaces {
		for {
			if _, some := of.Due(namespace, 0); !some {
				break
			}
			if err := r.next(of, namespace, func() {}); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestRandomProcesses has processes that do random things and crash at random writes. A returned batch must not change until it is done,
// and everything that was written must be recorded in the end.
func TestRandomProcesses(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newFixture(t)
	r := &records{fixture: s, batches: map[string]syncstatuspending.Batch{}}
	namespaces := []string{"shop", "bank", "mill"}
	version := 0
	written := map[string]int{}
	for range 60 {
		i := s.open()
		s.process.Start(1+random.IntN(12), nil)
		s.process.LoseResponse(random.IntN(2) == 0)
		stop := s.run(i, noNotices())
		var err error
		for err == nil {
			namespace := namespaces[random.IntN(len(namespaces))]
			switch random.IntN(7) {
			case 0, 1:
				err = r.next(i, namespace, func() {})
			case 2:
				s.clock.Step(time.Second)
			default:
				version++
				i.Add(changed(namespace, fmt.Sprintf("w%d", random.IntN(5)), version))
			}
		}
		if !errors.Is(err, testkit.ErrDead) {
			t.Fatal(err)
		}
		stop()
		s.process.Start(0, nil)
		maps.Copy(written, s.versions())
	}
	if err := r.all(s.open(), namespaces...); err != nil {
		t.Fatal(err)
	}
	recorded := map[string]int{}
	for _, batch := range r.batches {
		for _, change := range batch.Changes {
			key := change.Namespace + "/" + change.Name
			recorded[key] = max(recorded[key], atoi(t, change.ResourceVersion))
		}
	}
	for object, want := range written {
		if got := recorded[object]; got < want {
			t.Errorf("the last recorded version of %s is %d, want %d", object, got, want)
		}
	}
	if len(r.batches) < 10 || len(written) < 10 {
		t.Errorf("only %d batches, and %d written objects", len(r.batches), len(written))
	}
}

// versions returns the newest versions of objects in the table.
func (s *fixture) versions() map[string]int {
	s.Helper()
	out := map[string]int{}
	for row, err := range s.table().Scan(s.Context(), "") {
		if err != nil {
			s.Fatal(err)
		}
		parts := strings.Split(row.Key, "/")
		if len(parts) < 5 {
			continue
		}
		var change struct{ ResourceVersion string }
		if err := json.Unmarshal(row.Value, &change); err != nil {
			s.Fatal(err)
		}
		key := parts[0] + "/" + parts[4]
		out[key] = max(out[key], atoi(s, change.ResourceVersion))
	}
	return out
}
