// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// testChanges changes objects without requesting syncs.
func (s *testCluster) testChanges(t *testing.T) {
	c := s.newFixture(t, "flowed")
	r := receive(t, whisperer)
	c.pipeline(t, "debounce: 1s\n  batch: {maxWait: 1s}", sinks(r.sink("index")))
	c.define(t, widgets)
	if change := changes(t, r.next(t, 1)[0]); len(change.Upserts) != 1 || string(change.Upserts[0]) != `"widgets.flowed.example.com"` {
		t.Errorf("upserts = %s", change.Upserts)
	}
	c.create(t, "first", "tier=front")
	r.waitForChanges(t, "+first front")
	c.relabel(t, "first", "tier=back")
	r.waitForChanges(t, "+first back")
	c.remove(t, "first")
	r.waitForChanges(t, "-first")

	c.create(t, "second", "tier=front")
	r.waitForChanges(t, "+second front")
	c.Delete(t, "", c.definitions(widgets)...)
	c.expectBothDeleted(t, r)
}

// expectBothDeleted waits for the deletions of a definition and of its instance, in any order.
func (c *fixture) expectBothDeleted(t *testing.T, r *receiver) {
	t.Helper()
	calls := r.next(t, 2)
	got := slices.Concat(changes(t, calls[0]).Deletes, changes(t, calls[1]).Deletes)
	slices.Sort(got)
	want := []string{"flowed/flowed.example.com/v1/Widget/second", "widgets.flowed.example.com"}
	if !slices.Equal(got, want) {
		t.Errorf("deletes = %q, want %q", got, want)
	}
}

// testDebounce changes an object repeatedly, and creates and deletes others, before anything is sent.
func (s *testCluster) testDebounce(t *testing.T) {
	c := s.newFixture(t, "settled")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.readyPipeline(t, patient, noDefinitions, sinks(r.sink("index")))
	c.create(t, "changing")
	c.waitForPending(t, 1)
	for i := range 5 {
		c.relabel(t, "changing", fmt.Sprintf("tier=%d", i))
	}
	c.create(t, "deleted")
	c.waitForPending(t, 2)
	c.remove(t, "deleted")
	c.waitForPending(t, 1)
	c.mustSync(t, all)
	r.waitForChanges(t, "+changing 4")

	c.relabel(t, "changing", "tier=5")
	c.waitForPending(t, 1)
	c.relabel(t, "changing", "tier=4")
	c.waitForPending(t, 0)
	c.mustSync(t, all)
	if calls := r.rest(); len(calls) > 0 {
		t.Errorf("unchanged object was sent: %q", summarize(t, calls))
	}
}

// testBatches creates more objects than fit into a batch.
func (s *testCluster) testBatches(t *testing.T) {
	c := s.newFixture(t, "batched")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.readyPipeline(t, "debounce: 10m\n  batch: {maxItems: 3, maxWait: 5m}", noDefinitions, sinks(r.sink("index")))
	for i := range 7 {
		c.create(t, fmt.Sprint("w", i))
	}
	c.waitForPending(t, 7)
	c.mustSync(t, all)
	c.expectSizes(t, r, 3, 3, 1)

	// Three deletions make a batch.
	for i := range 3 {
		c.remove(t, fmt.Sprint("w", i))
	}
	c.expectSizes(t, r, 3)
}

// expectSizes waits for calls with these numbers of instances.
func (c *fixture) expectSizes(t *testing.T, r *receiver, want ...int) {
	t.Helper()
	var got []int
	for _, call := range r.next(t, len(want)) {
		got = append(got, len(summarize(t, []receivertest.Call{call})))
	}
	if more := r.rest(); !slices.Equal(got, want) || len(more) > 0 {
		t.Errorf("calls with %v objects and %d more calls, want %v", got, len(more), want)
	}
}

// twoVersions is a definition with two served versions. v1 is preferred.
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

// testVersions tests a resource with two versions and cluster-scoped objects.
func (s *testCluster) testVersions(t *testing.T) {
	c := s.newFixture(t, "versioned")
	r := receive(t, whisperer)
	c.Apply(t, fmt.Sprintf(twoVersions, c.group))
	c.HaveCondition(t, "", "Established", c.definitions(widgets)...)
	c.readyPipeline(t, patient, noDefinitions, sinks(r.sink("index")))
	mirrortest.Eventually(t, "a widget is created", func(ctx context.Context) error {
		manifest := fmt.Sprintf("{apiVersion: %s/v1beta1, kind: Widget, metadata: {name: first}}", c.group)
		return s.Try.Apply(ctx, "", manifest)
	})
	c.waitForPending(t, 1)
	c.mustSync(t, all)
	calls := r.rest()
	if len(calls) != 1 || len(changes(t, calls[0]).Upserts) != 1 {
		t.Fatalf("received %q", summarize(t, calls))
	}
	contains(t, string(changes(t, calls[0]).Upserts[0]), `"id":"_cluster/versioned.example.com/v1/Widget/first"`, `"namespace":"_cluster"`,
		`"labels":{}`, `"annotations":{}`)

	c.Run(t, "patch", "crd", "widgets."+c.group, "--type=json", "-p", `[{"op": "replace", "path": "/spec/versions/1/served", "value": false}]`)
	r.waitForVersionChange(t, "+_cluster/versioned.example.com/v1beta1/Widget/first",
		"-_cluster/versioned.example.com/v1/Widget/first", func() {
			c.mustSync(t, all)
		})
}

// waitForVersionChange waits for an upsert and a deletion with these ids, in any order, and requests a sync before each check.
func (r *receiver) waitForVersionChange(t *testing.T, upsert, deletion string, request func()) {
	t.Helper()
	var ids []string
	mirrortest.Eventually(t, "received "+upsert+" and "+deletion, func(context.Context) error {
		request()
		for _, call := range r.rest() {
			change := changes(t, call)
			for _, raw := range change.Upserts {
				_, id, _ := strings.Cut(string(raw), `"id":"`)
				id, _, _ = strings.Cut(id, `"`)
				ids = append(ids, "+"+id)
			}
			for _, id := range change.Deletes {
				ids = append(ids, "-"+id)
			}
		}
		if !slices.Contains(ids, upsert) || !slices.Contains(ids, deletion) {
			return fmt.Errorf("received %q", ids)
		}
		return nil
	})
}
