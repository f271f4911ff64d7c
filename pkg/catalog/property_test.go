// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
)

// mutate changes one workload in the source or the spec at random, and returns it.
func (w *simulation) mutate(random *rand.Rand) reference {
	names := []string{"api", "worker", "db", "cache"}
	name := names[random.Intn(len(names))]
	switch image := fmt.Sprintf("image:%d", random.Intn(3)); random.Intn(8) {
	case 0:
		delete(w.source, workload(name))
	case 1:
		w.catalog.Spec.Workloads = []reference{workload(name), workload("api")}
	case 2:
		w.catalog.Spec.Patches = nil
	case 3:
		w.catalog.Spec.Patches = []v1alpha1.Patch{patchOf(name, imagePatch)}
	default:
		w.put(name, image)
	}
	return workload(name)
}

// TestPlansAreTheSameAfterAnyInterruption changes catalogs and sources at random, and interrupts the writes of plans.
func TestPlansAreTheSameAfterAnyInterruption(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		w := newSimulation(t)
		for range 12 {
			for range random.Intn(4) {
				w.mutate(random)
			}
			before := w.catalog.Status.Revision
			whole := w.plan(t)
			interrupted := whole
			interrupted.writes = whole.writes[:random.Intn(len(whole.writes)+1)]
			w.write(interrupted)
			again := w.plan(t)
			if diff := cmp.Diff(whole.entries, again.entries); diff != "" || !slices.Equal(whole.changes, again.changes) {
				t.Fatalf("seed %d: plan %s, after an interruption %s", seed, whole, again)
			}
			w.commit(t, again)
			w.verify(t, seed, before, len(again.changes) > 0)
		}
	}
}

// verify checks that an updated catalog offers its source, and that nothing is left to do.
func (w *simulation) verify(t *testing.T, seed, before int64, changed bool) {
	t.Helper()
	if next := w.plan(t); len(next.changes)+len(next.writes) > 0 {
		t.Fatalf("seed %d: next plan is not empty: %s", seed, next)
	}
	if now := w.catalog.Status.Revision; changed != (now == before+1) || !changed && now != before {
		t.Fatalf("seed %d: revision %d after %d, changed: %v", seed, now, before, changed)
	}
	rules := w.planInput(t).rules
	for _, entry := range w.catalog.Status.Workloads {
		object, held := w.source[workload(entry.Name)], w.held[workload(entry.Name)]
		if held == nil || held.Status.Revision != entry.Revision || held.Status.Hash != entry.Hash || held.Status.Missing != entry.Missing {
			t.Fatalf("seed %d: entry = %+v, record = %+v", seed, entry, held)
		}
		if entry.Missing != (object == nil) {
			t.Fatalf("seed %d: entry = %+v, source = %v", seed, entry, object)
		}
		if object == nil {
			continue
		}
		content, err := capture.Capture(object, rules.Ignored)
		if err != nil {
			t.Fatal(err)
		}
		if offered, err := content.Patched(rules.Patches); err != nil || offered.Hash != entry.Hash {
			t.Fatalf("seed %d: offered %s differs from the source (%v)", seed, entry.Name, err)
		}
	}
	if named := sets.New(w.catalog.Spec.Workloads...); len(w.catalog.Status.Workloads) > named.Len() {
		t.Fatalf("seed %d: %d entries for %d workloads", seed, len(w.catalog.Status.Workloads), named.Len())
	}
}

// TestPartialReadsFindTheSameAsCompleteReads changes sources at random, and compares the plans after both kinds of reads.
func TestPartialReadsFindTheSameAsCompleteReads(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		w := newSimulation(t)
		for range 8 {
			spec := *w.catalog.Spec.DeepCopy()
			changed := sets.New[reference]()
			for range random.Intn(4) {
				changed.Insert(w.mutate(random))
			}
			w.catalog.Spec = spec
			whole := w.plan(t)
			part := w.plan(t, func(in *planInput) {
				objects := maps.Clone(w.source)
				maps.DeleteFunc(objects, func(workload reference, _ *unstructured.Unstructured) bool { return !changed.Has(workload) })
				in.source = sourceState{objects: objects, read: changed}
			})
			if whole.String() != part.String() {
				t.Fatalf("seed %d: plan of a complete read = %s, of a read of %v = %s", seed, whole, changed, part)
			}
			w.commit(t, part)
		}
	}
}

// TestRollbacksAreTheSameAfterAnyInterruption changes catalogs and sources at random, rolls back to a revision, and interrupts the writes
// of the rollback.
func TestRollbacksAreTheSameAfterAnyInterruption(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		w := newSimulation(t)
		history := []map[reference]*v1alpha1.CatalogWorkloadRecord{w.offered()}
		for range 8 {
			for range random.Intn(4) {
				w.mutate(random)
			}
			if w.commit(t, w.plan(t)); int64(len(history)) < w.catalog.Status.Revision {
				history = append(history, w.offered())
			}
			to := random.Intn(len(history))
			back := func() plan {
				out, err := newRollback(w.planInput(t), int64(to+1), history[to])
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			whole := back()
			interrupted := whole
			interrupted.writes = whole.writes[:random.Intn(len(whole.writes)+1)]
			w.write(interrupted)
			again := back()
			if diff := cmp.Diff(whole.entries, again.entries); diff != "" || !slices.Equal(whole.changes, again.changes) {
				t.Fatalf("seed %d: plan %s, after an interruption %s", seed, whole, again)
			}
			if w.commit(t, again); len(again.changes) > 0 {
				history = append(history, w.offered())
			}
			for workload, then := range history[to] {
				now := w.offered()[workload]
				if now == nil || now.Hash != then.Hash || now.Missing != then.Missing || contentHash(now) != contentHash(then) {
					t.Fatalf("seed %d: after a rollback to revision %d, %v = %+v, want %+v", seed, to+1, workload, now, then)
				}
			}
			if len(w.offered()) != len(history[to]) {
				t.Fatalf("seed %d: %d offered workloads, want %d", seed, len(w.offered()), len(history[to]))
			}
		}
	}
}

// offered returns what the catalog offers, in the form in which a revision is stored.
func (w *simulation) offered() map[reference]*v1alpha1.CatalogWorkloadRecord {
	out := map[reference]*v1alpha1.CatalogWorkloadRecord{}
	for _, entry := range w.catalog.Status.Workloads {
		of := reference{Kind: entry.Kind, Name: entry.Name}
		out[of] = w.held[of].Status.DeepCopy()
	}
	return out
}

func contentHash(record *v1alpha1.CatalogWorkloadRecord) string {
	return contentOf(&v1alpha1.CatalogWorkload{Status: *record}).Hash
}
