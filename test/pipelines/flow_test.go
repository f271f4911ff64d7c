// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// flowed has things change while nobody asks for anything.
func (s *stage) flowed(t *testing.T) {
	c := s.newScene(t, "flowed")
	r := receive(t, whisperer)
	c.pipeline(t, "debounce: 1s\n  batch: {maxWait: 1s}", sinks(r.sink("index")))
	c.define(t, widgets)
	if said := changes(t, r.next(t, 1)[0]); len(said.Upserts) != 1 || string(said.Upserts[0]) != `"widgets.flowed.example.com"` {
		t.Errorf("it is told of %s", said.Upserts)
	}
	c.create(t, "first", "tier=front")
	r.hears(t, "+first front")
	c.relabel(t, "first", "tier=back")
	r.hears(t, "+first back")
	c.remove(t, "first")
	r.hears(t, "-first")

	c.create(t, "second", "tier=front")
	r.hears(t, "+second front")
	c.Run(t, append([]string{"delete"}, c.definitions(widgets)...)...)
	c.bothGo(t, r)
}

// bothGo waits until the definition and the instance that went with it are told of as gone, in any order.
func (c *scene) bothGo(t *testing.T, r *receiver) {
	t.Helper()
	calls := r.next(t, 2)
	got := slices.Concat(changes(t, calls[0]).Deletes, changes(t, calls[1]).Deletes)
	slices.Sort(got)
	want := []string{"flowed/flowed.example.com/v1/Widget/second", "widgets.flowed.example.com"}
	if !slices.Equal(got, want) {
		t.Errorf("%q are gone, want %q", got, want)
	}
}

// settled has an object change again and again, and others come and go, before anything is sent.
func (s *stage) settled(t *testing.T) {
	c := s.newScene(t, "settled")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.listens(t, patient, noDefinitions, sinks(r.sink("index")))
	c.create(t, "restless")
	c.waits(t, 1)
	for i := range 5 {
		c.relabel(t, "restless", fmt.Sprintf("tier=%d", i))
	}
	c.create(t, "passing")
	c.waits(t, 2)
	c.remove(t, "passing")
	c.waits(t, 1)
	c.synced(t, all)
	r.hears(t, "+restless 4")

	c.relabel(t, "restless", "tier=5")
	c.waits(t, 1)
	c.relabel(t, "restless", "tier=4")
	c.waits(t, 0)
	c.synced(t, all)
	if calls := r.rest(); len(calls) > 0 {
		t.Errorf("what is as it was is told: %q", story(t, calls))
	}
}

// batched has more objects than fit into a batch.
func (s *stage) batched(t *testing.T) {
	c := s.newScene(t, "batched")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.listens(t, "debounce: 10m\n  batch: {maxItems: 3, maxWait: 5m}", noDefinitions, sinks(r.sink("index")))
	for i := range 7 {
		c.create(t, fmt.Sprint("w", i))
	}
	c.waits(t, 7)
	c.synced(t, all)
	c.expectSizes(t, r, 3, 3, 1)

	// Deletions wait for nobody but each other: three make a batch.
	for i := range 3 {
		c.remove(t, fmt.Sprint("w", i))
	}
	c.expectSizes(t, r, 3)
}

// expectSizes waits for calls that tell of so many instances each.
func (c *scene) expectSizes(t *testing.T, r *receiver, want ...int) {
	t.Helper()
	var got []int
	for _, call := range r.next(t, len(want)) {
		got = append(got, len(story(t, []receivertest.Call{call})))
	}
	if more := r.rest(); !slices.Equal(got, want) || len(more) > 0 {
		t.Errorf("calls of %v objects and %d more, want %v", got, len(more), want)
	}
}

// twoVersions is a definition that serves two, and prefers v1.
const twoVersions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Cluster
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1beta1, served: true, storage: true, schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1, served: true, storage: false, schema: *any}
`

// versioned has a resource with two versions. Its objects are in no namespace.
func (s *stage) versioned(t *testing.T) {
	c := s.newScene(t, "versioned")
	r := receive(t, whisperer)
	c.Apply(t, fmt.Sprintf(twoVersions, c.group))
	c.Run(t, append([]string{"wait", "--for=condition=Established", "--timeout=180s"}, c.definitions(widgets)...)...)
	c.listens(t, patient, noDefinitions, sinks(r.sink("index")))
	mirrortest.Eventually(t, "a widget is made", func(ctx context.Context) error {
		manifest := fmt.Sprintf("{apiVersion: %s/v1beta1, kind: Widget, metadata: {name: first}}", c.group)
		_, err := s.admin.Kubectl.Feed(ctx, manifest, "apply", "-f", "-")
		return err
	})
	c.waits(t, 1)
	c.synced(t, all)
	calls := r.rest()
	if len(calls) != 1 || len(changes(t, calls[0]).Upserts) != 1 {
		t.Fatalf("it is told %q", story(t, calls))
	}
	contains(t, string(changes(t, calls[0]).Upserts[0]), `"id":"_cluster/versioned.example.com/v1/Widget/first"`, `"namespace":"_cluster"`,
		`"labels":{}`, `"annotations":{}`)

	c.Run(t, "patch", "crd", "widgets."+c.group, "--type=json", "-p", `[{"op": "replace", "path": "/spec/versions/1/served", "value": false}]`)
	r.hearsAll(t, "+_cluster/versioned.example.com/v1beta1/Widget/first", "-_cluster/versioned.example.com/v1/Widget/first", func() {
		c.synced(t, all)
	})
}

// hearsAll waits until the receiver has been told to have these ids, in any order, and asks for that again and again.
func (r *receiver) hearsAll(t *testing.T, upsert, deletion string, ask func()) {
	t.Helper()
	var said []string
	mirrortest.Eventually(t, "it is told "+upsert+" and "+deletion, func(context.Context) error {
		ask()
		for _, call := range r.rest() {
			change := changes(t, call)
			for _, raw := range change.Upserts {
				_, id, _ := strings.Cut(string(raw), `"id":"`)
				id, _, _ = strings.Cut(id, `"`)
				said = append(said, "+"+id)
			}
			for _, id := range change.Deletes {
				said = append(said, "-"+id)
			}
		}
		if !slices.Contains(said, upsert) || !slices.Contains(said, deletion) {
			return fmt.Errorf("it was told %q", said)
		}
		return nil
	})
}
