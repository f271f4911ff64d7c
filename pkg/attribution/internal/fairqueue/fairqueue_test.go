// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/attribution/internal/fairqueue"
)

func TestOldestOfLargestOwnerIsEvicted(t *testing.T) {
	q := fairqueue.New[string](4)
	var removed []string
	for _, value := range []string{"a1", "b1", "a2", "a3", "c1", "b2", "d1", "a4", "a5"} {
		if _, evicted := q.Add(value[:1], value); evicted != nil {
			removed = append(removed, evicted.Value)
		}
	}
	// After "d1", each owner has one value, except for a or b, which has two.
	if len(removed) != 5 || removed[0] != "a1" {
		t.Errorf("evicted = %v", removed)
	}
	if got := values(q); len(got) != 4 || !slices.Contains(got, "c1") || !slices.Contains(got, "d1") || !slices.Contains(got, "a5") {
		t.Errorf("values = %v", got)
	}
}

func values(q *fairqueue.Queue[string]) (found []string) {
	for _, entry := range q.Entries() {
		found = append(found, entry.Value)
	}
	return found
}

// TestQueueIsFair compares random histories with a simple model.
func TestQueueIsFair(t *testing.T) {
	const bound = 20
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	q, model := fairqueue.New[string](bound), map[string][]*fairqueue.Entry[string]{}
	for i := range 5000 {
		if entries := q.Entries(); len(entries) > 0 && random.IntN(3) == 0 {
			entry := entries[random.IntN(len(entries))]
			q.Remove(entry)
			q.Remove(entry) // a second time is a no-op
			drop(model, entry)
		} else {
			name := fmt.Sprint(random.IntN(6) * random.IntN(3))
			added, evicted := q.Add(name, fmt.Sprintf("%s/%d", name, i))
			model[name] = append(model[name], added)
			if full := lengthOf(model) > bound; full != (evicted != nil) {
				t.Fatalf("%d values, evicted %v", lengthOf(model), evicted)
			}
			if evicted != nil {
				checkEvicted(t, model, evicted)
				drop(model, evicted)
			}
		}
		if entries := len(q.Entries()); entries != lengthOf(model) {
			t.Fatalf("%d entries, want %d", entries, lengthOf(model))
		}
		checkOrder(t, q, model)
	}
}

func checkEvicted(t *testing.T, model map[string][]*fairqueue.Entry[string], evicted *fairqueue.Entry[string]) {
	t.Helper()
	most := 0
	for _, entries := range model {
		most = max(most, len(entries))
	}
	for _, entries := range model {
		if entries[0] == evicted && len(entries) == most && !evicted.Queued() {
			return
		}
	}
	t.Fatalf("evicted %s, want the oldest value of the owner with the most values", evicted.Value)
}

func checkOrder(t *testing.T, q *fairqueue.Queue[string], model map[string][]*fairqueue.Entry[string]) {
	t.Helper()
	all := q.Entries()
	for name, want := range model {
		var got []*fairqueue.Entry[string]
		for _, entry := range all {
			if slices.Contains(want, entry) {
				got = append(got, entry)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("values of %s are out of order", name)
		}
	}
}

func drop(model map[string][]*fairqueue.Entry[string], removed *fairqueue.Entry[string]) {
	for name, entries := range model {
		kept := slices.DeleteFunc(entries, func(e *fairqueue.Entry[string]) bool { return e == removed })
		if model[name] = kept; len(kept) == 0 {
			delete(model, name)
		}
	}
}

func lengthOf(model map[string][]*fairqueue.Entry[string]) (n int) {
	for _, entries := range model {
		n += len(entries)
	}
	return n
}

// BenchmarkAdd adds to a full queue.
func BenchmarkAdd(b *testing.B) {
	for _, owners := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("owners=%d", owners), func(b *testing.B) {
			names := make([]string, owners)
			for i := range names {
				names[i] = fmt.Sprint(i)
			}
			q := fairqueue.New[int](10_000)
			for i := range b.N {
				q.Add(names[i%owners], i)
			}
		})
	}
}
