// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
)

// simulation has a catalog and its source without an API. Plans are applied directly.
type simulation struct {
	catalog *v1alpha1.AppCatalog
	held    map[reference]*v1alpha1.CatalogWorkload
	source  map[reference]*unstructured.Unstructured
}

func workload(name string) reference { return reference{Kind: v1alpha1.WorkloadDeployment, Name: name} }

// newSimulation returns a simulation with a catalog whose first revision has api and worker.
func newSimulation(t testing.TB) *simulation {
	t.Helper()
	w := &simulation{
		catalog: appCatalog("shop", "api", "worker"),
		held:    map[reference]*v1alpha1.CatalogWorkload{}, source: map[reference]*unstructured.Unstructured{},
	}
	w.put("api", "shop/api:1")
	w.put("worker", "shop/worker:1")
	w.commit(t, w.plan(t))
	return w
}

func (w *simulation) put(name, image string) { w.source[workload(name)] = deployment(name, image) }

// planInput returns the input of a plan for which the whole source was read.
func (w *simulation) planInput(t testing.TB) planInput {
	t.Helper()
	rules, err := capture.NewRules(&w.catalog.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return planInput{
		catalog: w.catalog, rules: rules, held: w.held, source: sourceState{objects: w.source, complete: true}, now: noon,
		preview: w.catalog.Spec.PreviewOnly,
	}
}

func (w *simulation) plan(t testing.TB, changes ...func(*planInput)) plan {
	t.Helper()
	s := w.planInput(t)
	for _, change := range changes {
		change(&s)
	}
	out, err := newPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// write stores the CatalogWorkloads of a plan, as the first part of a commit does.
func (w *simulation) write(p plan) {
	for _, record := range p.writes {
		w.held[workload(record.Status.Name)] = record
	}
}

// commit applies a plan, as the updater does.
func (w *simulation) commit(t testing.TB, p plan) {
	t.Helper()
	w.write(p)
	if len(p.changes) > 0 && !p.preview {
		advance(w.catalog, p.entries, "shop-bcdfg", noon)
	}
	if p.preview {
		return
	}
	offered := sets.New[reference]()
	for _, entry := range w.catalog.Status.Workloads {
		offered.Insert(reference{Kind: entry.Kind, Name: entry.Name})
	}
	for held := range w.held {
		if !offered.Has(held) {
			delete(w.held, held)
		}
	}
}

func (p plan) String() string {
	var words []string
	for _, change := range p.changes {
		words = append(words, fmt.Sprintf("%s %s", change.ChangeType, change.Name))
	}
	words = append(words, "|")
	for _, entry := range p.entries {
		word := fmt.Sprintf("%s@%d", entry.Name, entry.Revision)
		if entry.Missing {
			word += "?"
		}
		words = append(words, word)
	}
	words = append(words, "|")
	for _, record := range p.writes {
		words = append(words, record.Status.Name)
	}
	return strings.Join(words, " ")
}

// partialRead restricts what was read of the source to some workloads.
func partialRead(names ...string) func(*planInput) {
	return func(in *planInput) {
		in.source.complete, in.source.read = false, sets.New[reference]()
		for _, name := range names {
			in.source.read.Insert(workload(name))
		}
	}
}

func patchOf(name, patch string) v1alpha1.Patch {
	return v1alpha1.Patch{
		Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: name}, Type: v1alpha1.PatchStrategicMerge, Patch: patch,
	}
}

const imagePatch = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"patched"}]}}}}`

// TestPlansKeepTheResourceVersion checks that writes fail if another client has written the object since. So a server that has lost its
// Lease cannot revert what the new leader has written.
func TestPlansKeepTheResourceVersion(t *testing.T) {
	back := func(in *planInput) plan {
		then := map[reference]*v1alpha1.CatalogWorkloadRecord{}
		for of, held := range in.held {
			then[of] = held.Status.DeepCopy()
			then[of].Hash, then[of].Revision = "another", 1
		}
		out, err := newRollback(*in, 1, then)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, plan := range map[string]func(w *simulation) plan{
		"changed":     func(w *simulation) plan { w.put("api", "shop/api:2"); return w.plan(t) },
		"missing":     func(w *simulation) plan { delete(w.source, workload("api")); return w.plan(t) },
		"rolled back": func(w *simulation) plan { s := w.planInput(t); return back(&s) },
	} {
		w := newSimulation(t)
		for _, held := range w.held {
			held.UID, held.ResourceVersion = "a", "7"
		}
		writes := plan(w).writes
		for _, record := range writes {
			if record.UID != "a" || record.ResourceVersion != "7" {
				t.Errorf("%s: %s is written with uid %q and resourceVersion %q", name, record.Name, record.UID, record.ResourceVersion)
			}
		}
		if len(writes) == 0 {
			t.Errorf("%s: nothing is written", name)
		}
	}
}

// TestPlans has the changes of a plan, its entries with their revisions, and its CatalogWorkloads in want.
func TestPlans(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, w *simulation)
		input  []func(*planInput)
		want   string
	}{
		"nothing":           {func(*testing.T, *simulation) {}, nil, "| api@1 worker@1 |"},
		"an image":          {func(_ *testing.T, w *simulation) { w.put("api", "shop/api:2") }, nil, "Changed api | api@2 worker@1 | api"},
		"an unknown object": {func(_ *testing.T, w *simulation) { w.put("db", "db:1") }, nil, "| api@1 worker@1 |"},
		"an ignored field": {func(_ *testing.T, w *simulation) { with(int64(7), "spec", "replicas")(w.source[workload("api")]) }, nil,
			"| api@1 worker@1 |"},
		"a status": {func(_ *testing.T, w *simulation) { with(int64(7), "status", "replicas")(w.source[workload("api")]) }, nil,
			"| api@1 worker@1 |"},
		"an interrupted batch before an edit": {func(t *testing.T, w *simulation) {
			w.put("api", "shop/api:2")
			w.write(w.plan(t))
			w.catalog.Spec.Patches = []v1alpha1.Patch{patchOf("worker", imagePatch)}
		}, []func(*planInput){func(in *planInput) { in.sourceOnly, in.resumed = true, true }}, "Changed api | api@2 worker@1 |"},
		"a batch before an interrupted edit": {func(t *testing.T, w *simulation) {
			w.catalog.Spec.Patches = []v1alpha1.Patch{patchOf("api", imagePatch)}
			w.write(w.plan(t))
		}, []func(*planInput){func(in *planInput) { in.sourceOnly = true }}, "| api@1 worker@1 |"},
		"a resourceVersion": {
			func(_ *testing.T, w *simulation) { w.source[workload("api")].SetResourceVersion("777") }, nil, "| api@1 worker@1 |",
		},
		"the same, recreated": {func(_ *testing.T, w *simulation) { w.source[workload("api")].SetUID("another") }, nil, "| api@1 worker@1 | api"},
		"a deletion": {func(_ *testing.T, w *simulation) { delete(w.source, workload("worker")) }, nil,
			"Removed worker | api@1 worker@2? | worker"},
		"a deletion that was not read": {func(_ *testing.T, w *simulation) { delete(w.source, workload("worker")) },
			[]func(*planInput){partialRead("api")}, "| api@1 worker@1 |"},
		"a deletion of an unknown kind": {func(_ *testing.T, w *simulation) { clear(w.source) },
			[]func(*planInput){func(in *planInput) { in.source.unknown = sets.New(v1alpha1.WorkloadDeployment) }}, "| api@1 worker@1 |"},
		"a change that was not read": {func(_ *testing.T, w *simulation) { w.put("api", "shop/api:2"); delete(w.source, workload("api")) },
			[]func(*planInput){partialRead("worker")}, "| api@1 worker@1 |"},
		"an editor removes": {func(_ *testing.T, w *simulation) { w.catalog.Spec.Workloads = w.catalog.Spec.Workloads[:1] }, nil,
			"Removed worker | api@1 |"},
		"an editor removes a missing workload": {func(_ *testing.T, w *simulation) {
			delete(w.source, workload("worker"))
			w.catalog.Spec.Workloads = w.catalog.Spec.Workloads[:1]
		}, nil, "Removed worker | api@1 |"},
		"an editor adds a workload that does not exist": {func(_ *testing.T, w *simulation) {
			w.catalog.Spec.Workloads = append(w.catalog.Spec.Workloads, workload("db"))
		},
			nil, "| api@1 worker@1 |"},
		"an editor selects": {func(_ *testing.T, w *simulation) {
			w.put("db", "db:1")
			w.catalog.Spec.WorkloadSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
		}, nil, "Added db | api@1 db@2 worker@1 | db"},
		"an editor patches": {func(_ *testing.T, w *simulation) {
			w.catalog.Spec.Patches = []v1alpha1.Patch{patchOf("api", imagePatch)}
		}, nil,
			"Changed api | api@2 worker@1 | api"},
		"a source change that a patch hides": {func(t *testing.T, w *simulation) {
			w.catalog.Spec.Patches = []v1alpha1.Patch{patchOf("api", imagePatch)}
			w.commit(t, w.plan(t))
			w.put("api", "shop/api:2")
		}, nil, "| api@2 worker@1 | api"},
		"a preview": {func(_ *testing.T, w *simulation) {
			w.catalog.Spec.PreviewOnly = true
			w.put("api", "shop/api:2")
			delete(w.source, workload("worker"))
		}, nil, "Changed api Removed worker | api@1 worker@1 | api worker"},
		"a batch before an edit": {func(_ *testing.T, w *simulation) {
			w.put("api", "shop/api:2")
			w.put("db", "db:1")
			w.catalog.Spec.Workloads = []reference{workload("api"), workload("db")}
			w.catalog.Spec.Patches = []v1alpha1.Patch{patchOf("worker", imagePatch)}
		}, []func(*planInput){func(in *planInput) { in.sourceOnly = true }}, "Changed api | api@2 worker@1 | api"},
		"a deletion before an edit": {func(_ *testing.T, w *simulation) {
			delete(w.source, workload("worker"))
			w.catalog.Spec.Patches = []v1alpha1.Patch{patchOf("api", imagePatch)}
		}, []func(*planInput){func(in *planInput) { in.sourceOnly = true }}, "Removed worker | api@1 worker@2? | worker"},
		"removed labels": {func(_ *testing.T, w *simulation) {
			w.catalog.Spec.Workloads = w.catalog.Spec.Workloads[:1]
			w.catalog.Spec.WorkloadSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "worker"}}
			w.source[workload("worker")].SetLabels(nil)
		}, nil, "Removed worker | api@1 worker@2? | worker"},
		"a deleted CatalogWorkload": {func(_ *testing.T, w *simulation) { delete(w.held, workload("api")) }, nil, "| api@1 worker@1 | api"},
		"a CatalogWorkload of an interrupted update": {func(t *testing.T, w *simulation) {
			w.put("api", "shop/api:2")
			w.write(w.plan(t))
		}, nil, "Changed api | api@2 worker@1 |"},
		"a CatalogWorkload of an interrupted update whose change was reverted": {func(t *testing.T, w *simulation) {
			w.put("api", "shop/api:2")
			w.write(w.plan(t))
			w.put("api", "shop/api:1")
		}, nil, "| api@1 worker@1 | api"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimulation(t)
			test.change(t, w)
			if got := w.plan(t, test.input...).String(); strings.TrimSpace(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestPlansWithFailingPatches(t *testing.T) {
	w := newSimulation(t)
	w.catalog.Spec.Patches = []v1alpha1.Patch{failingPatch}
	_, err := newPlan(w.planInput(t))
	if why := (*stallingError)(nil); !errors.As(err, &why) || why.reason != v1alpha1.ReasonPatchFailed ||
		!strings.Contains(err.Error(), `"api"`) {
		t.Errorf("error = %v", err)
	}
}

func TestPlansWithTooLongNames(t *testing.T) {
	w := newSimulation(t)
	w.catalog.Spec.WorkloadSelector = &metav1.LabelSelector{}
	w.put(strings.Repeat("a", 250), "shop/api:1")
	_, err := newPlan(w.planInput(t))
	if why := (*stallingError)(nil); !errors.As(err, &why) || why.reason != v1alpha1.ReasonRecordRefused {
		t.Errorf("error = %v", err)
	}
}
