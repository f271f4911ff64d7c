// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

func always(schema.GroupVersionResource) bool { return true }

func never(schema.GroupVersionResource) bool { return false }

func TestSeedsAreTakenOnceTheirWatchesRun(t *testing.T) {
	s := newSeeds()
	if !s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a"}) {
		t.Fatal("new type has no pending comparison")
	}
	if _, ok := s.take(never, never); ok {
		t.Error("comparison started before the watch runs")
	}
	next, ok := s.take(always, never)
	if !ok || next.resource != configMaps {
		t.Fatalf("next = %+v, %t", next, ok)
	}
	if _, ok := s.take(always, never); ok {
		t.Error("comparison started twice")
	}
	if s.compared(configMaps) || !s.outstanding() {
		t.Error("compared before the comparison succeeded")
	}
	s.succeeded(next, nil, found{})
	if !s.compared(configMaps) || s.outstanding() {
		t.Error("not compared after the comparison succeeded")
	}
	if s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a"}) {
		t.Error("same selection is compared again")
	}
	if !s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "b"}) || s.compared(configMaps) {
		t.Error("changed selection is not compared")
	}
}

func TestFailedSeedsAreRetriedLater(t *testing.T) {
	s := newSeeds()
	s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a"})
	next, _ := s.take(always, never)
	s.failed(next, errors.New("forbidden"))
	if _, ok := s.take(always, never); ok {
		t.Error("failed comparison is retried at once")
	}
	if due, _ := s.next(); due.IsZero() {
		t.Error("no retry is scheduled")
	}
	if s.report()[0].failure != "forbidden" {
		t.Errorf("report = %+v", s.report())
	}
	s.invalidate(configMaps) // the watch has started again, so the cause may be removed
	if _, ok := s.take(always, never); !ok {
		t.Error("comparison is not retried after the watch has started again")
	}
}

func TestNamespacesAreComparedAlone(t *testing.T) {
	s := newSeeds()
	s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a"})
	first, _ := s.take(always, never)
	s.succeeded(first, nil, found{})
	s.invalidateNamespace(configMaps, "b")
	s.invalidateNamespace(configMaps, "a")
	next, ok := s.take(always, never)
	if !ok || !slices.Equal(next.namespaces, []string{"a", "b"}) {
		t.Fatalf("next = %+v, %t", next, ok)
	}
	s.failed(next, errors.New("later"))
	s.invalidate(configMaps)
	if next, _ = s.take(always, never); len(next.namespaces) != 0 {
		t.Errorf("next = %+v, want the whole type", next)
	}
}

// TestManyNamespacesAreComparedTogether checks that a type is compared completely once many of its namespaces were compared alone, or are
// to be, and that what is remembered of namespaces is bounded by that.
func TestManyNamespacesAreComparedTogether(t *testing.T) {
	s := newSeeds()
	s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a"})
	compare := func() (whole bool) {
		next, _ := s.take(always, never)
		if len(next.namespaces) == 0 {
			s.succeeded(next, map[watch.Watch]position{{Resource: configMaps}: {resourceVersion: "100"}}, found{})
			return true
		}
		listed := map[watch.Watch]position{}
		for _, namespace := range next.namespaces {
			listed[watch.Watch{Resource: configMaps, Namespace: namespace}] = position{resourceVersion: "100"}
		}
		s.succeeded(next, listed, found{})
		return false
	}
	compare()
	complete := 0
	for i := range 3 * seedNamespaces {
		s.invalidateNamespace(configMaps, fmt.Sprint("preview-", i))
		if compare() {
			complete++
		}
		if n := len(s.types[configMaps].listed); n > 1+seedNamespaces {
			t.Fatalf("the positions of %d scopes are kept after %d comparisons", n, i)
		}
	}
	if complete != 2 {
		t.Errorf("%d complete comparisons, want 2", complete)
	}
	for i := range 2 * seedNamespaces {
		s.invalidateNamespace(configMaps, fmt.Sprint("preview-", i))
	}
	if !compare() {
		t.Errorf("%d namespaces are compared alone", 2*seedNamespaces)
	}
	if !s.superseded(configMap("a"), "100", false) {
		t.Error("the change of a namespace that was compared alone before is not superseded")
	}
}

func TestChangesOlderThanTheListAreSuperseded(t *testing.T) {
	s := newSeeds()
	s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a"})
	first, _ := s.take(always, never)
	s.succeeded(first, map[watch.Watch]position{{Resource: configMaps, Namespace: "shop"}: {resourceVersion: "100"}}, found{})
	change := func(namespace, version string) outbox.Change {
		return outbox.Change{ResourceVersion: version, Object: outbox.Object{Version: "v1", Resource: "configmaps", Namespace: namespace}}
	}
	for _, tc := range []struct {
		change outbox.Change
		want   bool
	}{
		{change("shop", "99"), true},
		{change("shop", "100"), true},
		{change("shop", "101"), false},
		{change("shop", "1000"), false},
		{change("dev", "99"), false}, // not listed
		{change("shop", ""), false},
	} {
		if got := s.superseded(tc.change.Object, tc.change.ResourceVersion, false); got != tc.want {
			t.Errorf("%+v: superseded %t, want %t", tc.change, got, tc.want)
		}
	}
}

// TestChangesOfAPartAreSuperseded checks that a comparison that did not end supersedes the changes of the objects that it has compared, and
// that later ones supersede the others nevertheless.
func TestChangesOfAPartAreSuperseded(t *testing.T) {
	s := newSeeds()
	s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a"})
	shop := watch.Watch{Resource: configMaps, Namespace: "shop"}
	expect := func(when, name, version string, want bool) {
		t.Helper()
		object := configMap(name)
		if got := s.superseded(object, version, false); got != want {
			t.Errorf("%s: change of %s at %s: superseded %t, want %t", when, object, version, got, want)
		}
	}
	s.listedAt(shop, position{resourceVersion: "100", through: "shop/b"})
	s.listedAt(shop, position{resourceVersion: "100", through: "shop/a"}) // an earlier part
	s.listedAt(shop, position{resourceVersion: "200", through: "shop/a"})
	for range 2 {
		expect("parts", "a", "200", true)
		expect("parts", "a", "201", false)
		expect("parts", "b", "100", true)
		expect("parts", "b", "200", false)
		expect("parts", "c", "100", false)
		s.listedAt(shop, position{resourceVersion: "100", through: "shop/b"})
	}
	if n := len(s.types[configMaps].listed[shop]); n != 2 {
		t.Errorf("%d positions are kept, want 2", n)
	}
	first, _ := s.take(always, never)
	s.succeeded(first, map[watch.Watch]position{shop: {resourceVersion: "300"}}, found{})
	expect("complete", "c", "300", true)
	s.listedAt(shop, position{resourceVersion: "400", through: "shop/a"})
	expect("next part", "a", "400", true)
	expect("next part", "c", "300", true)
	expect("next part", "c", "400", false)
}

// TestPositionsThatCannotBeCompared checks that a position with such a version does not replace one that supersedes changes.
func TestPositionsThatCannotBeCompared(t *testing.T) {
	whole, part := position{resourceVersion: "100"}, position{resourceVersion: "100", through: "shop/a"}
	odd, oddPart := position{resourceVersion: "odd"}, position{resourceVersion: "odd", through: "shop/a"}
	for _, tt := range []struct {
		p, other position
		want     bool
	}{
		{whole, odd, true},
		{part, odd, true},
		{odd, oddPart, true},
		{oddPart, odd, true},
		{odd, whole, false},
		{odd, part, false},
		{oddPart, part, false},
	} {
		if got := tt.p.includes(tt.other); got != tt.want {
			t.Errorf("%+v includes %+v: %t, want %t", tt.p, tt.other, got, tt.want)
		}
	}
}

// TestDeletionsAfterAPart checks that a part of a comparison does not supersede a deletion, because it removes no files, unless the object
// was created again.
func TestDeletionsAfterAPart(t *testing.T) {
	d := &destination{queue: outbox.NewQueue(), seeds: newSeeds()}
	d.seeds.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a"})
	shop := watch.Watch{Resource: configMaps, Namespace: "shop"}
	d.seeds.listedAt(shop, position{resourceVersion: "60", through: "shop/m"})
	object := rendered{object: configMap("a"), path: "a.yaml"}
	deletion := outbox.Row{Sequence: 1, Change: outbox.Change{
		Path: object.path, Object: object.object, ResourceVersion: "50", Operation: v1alpha1.OperationDelete,
	}}
	expect := func(when string, superseded, known bool) {
		t.Helper()
		if got := d.superseded(deletion); got != superseded {
			t.Errorf("%s: superseded = %t, want %t", when, got, superseded)
		}
		// The state is known from the pending change, because the branch has not been read.
		if _, exists, sure := d.known(nil, object); exists || sure != known {
			t.Errorf("%s: exists = %t, sure = %t, want false, %t", when, exists, sure, known)
		}
	}
	d.queue.Enqueued(object.path, pendingOf(deletion.Change, 1))
	expect("part", false, true)
	again := deletion.Change
	again.ResourceVersion, again.Operation, again.Content = "55", v1alpha1.OperationCreate, []byte("a: 1\n")
	d.queue.Enqueued(object.path, pendingOf(again, 2))
	expect("created again", true, false)
	d.queue.Withdrawn(object.path, 2)
	d.queue.Enqueued(object.path, pendingOf(deletion.Change, 1))
	d.seeds.listedAt(shop, position{resourceVersion: "60"})
	expect("complete", true, false)
}

// TestListsOfTypesThatAreSelectedLater checks that the comparisons of an earlier process count for types that are selected later.
func TestListsOfTypesThatAreSelectedLater(t *testing.T) {
	s := newSeeds()
	s.listedAt(watch.Watch{Resource: configMaps, Namespace: "shop"}, position{resourceVersion: "100"})
	s.selectTypes(map[schema.GroupVersionResource]string{namespaces: "a"})
	s.selectTypes(map[schema.GroupVersionResource]string{namespaces: "a", configMaps: "a"})
	if !s.superseded(configMap("a"), "100", false) || s.superseded(configMap("a"), "101", false) {
		t.Error("the changes up to the list are not superseded, or later ones are")
	}
}

func TestDeselectedTypesAreSwept(t *testing.T) {
	s := newSeeds()
	s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a"})
	if !s.takeSweep() {
		t.Error("no sweep after the start")
	}
	if s.takeSweep() {
		t.Error("swept twice")
	}
	s.selectTypes(map[schema.GroupVersionResource]string{})
	if !s.takeSweep() {
		t.Error("no sweep of a deselected type")
	}
}
