// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// testPermissionLost revokes a user's permission to read what their pipeline sends, and grants it again.
func (s *testCluster) testPermissionLost(t *testing.T) {
	c := s.newFixture(t, "withdrawn")
	dave := s.person(t, "dave")
	rights := people.Everywhere("readers", dave.Name) + people.Everywhere("slipstream-admin", dave.Name)
	s.Apply(t, rights)
	r := receive(t, whisperer)
	c.define(t, widgets)
	mirrortest.Eventually(t, "dave can create a pipeline", func(ctx context.Context) error {
		return dave.Try.Apply(ctx, "", c.ofLines(prompt, noDefinitions, sinks(r.sink("index"))))
	})
	c.create(t, "first")
	r.waitForChanges(t, "+first")
	c.waitForDelivered(t, 1)

	s.Delete(t, "", "clusterrolebinding/dave-readers")
	s.restart(t, syscall.SIGTERM, func() {}) // Access reviews are cached for some minutes; a new process starts without the cache.
	c.create(t, "second")
	p := c.waitFor(t, "reports the lost permission", func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonPermissionLost)
	})
	if p.Status.EditedBy == nil || p.Status.EditedBy.Username != dave.Name {
		t.Errorf("editedBy = %+v", p.Status.EditedBy)
	}
	c.waitForWarning(t, `user "dave" may not list widgets.withdrawn.example.com in the whole cluster`)
	c.remove(t, "first")
	if calls := r.rest(); len(calls) > 0 {
		t.Errorf("sent without permission: %q", summarize(t, calls))
	}

	s.Apply(t, rights)
	s.restart(t, syscall.SIGTERM, func() {})
	c.expectAnyOrder(t, r, "+second", "-first")
	c.Ready(t, "", "pipe/"+c.name)
}

// waitForWarning waits for a warning Event about the pipeline.
func (c *fixture) waitForWarning(t *testing.T, message string) {
	t.Helper()
	c.waitForEvent(t, message, "type=Warning")
}

// waitForEvent waits for an Event about the pipeline whose type, reason and message contain a text.
func (c *fixture) waitForEvent(t *testing.T, message string, selectors ...string) {
	t.Helper()
	selectors = append(selectors, "involvedObject.kind=SyncPipeline", "involvedObject.name="+c.name)
	mirrortest.Eventually(t, "Event: "+message, func(ctx context.Context) error {
		out, err := c.Try.Events(ctx, "", strings.Join(selectors, ","))
		if err == nil && !strings.Contains(out, message) {
			err = fmt.Errorf("found %q", out)
		}
		return err
	})
}

// expectAnyOrder waits until the receiver has got exactly these changes, in any order.
func (c *fixture) expectAnyOrder(t *testing.T, r *receiver, want ...string) {
	t.Helper()
	var got []string
	mirrortest.Eventually(t, fmt.Sprintf("%s receives %q", r.format, want), func(context.Context) error {
		if got = append(got, summarize(t, r.rest())...); len(got) < len(want) {
			return fmt.Errorf("received %q", got)
		}
		return nil
	})
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

// testSuspendedByPolicy suspends and resumes all pipelines by the SyncPolicy.
func (s *testCluster) testSuspendedByPolicy(t *testing.T) {
	c := s.newFixture(t, "governed")
	defer s.applySyncPolicy(t)
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.readyPipeline(t, prompt, noDefinitions, sinks(r.sink("index")))
	for _, name := range []string{"first", "second"} {
		c.create(t, name)
		r.waitForChanges(t, "+"+name)
	}
	c.waitForDelivered(t, 2)
	s.applySyncPolicy(t, "suspend: {pipelines: true}")
	isHeld := func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonPipelinesSuspended)
	}
	c.waitFor(t, "is held", isHeld)
	c.waitForStatus(t, "Held: ")
	c.remove(t, "first")
	c.create(t, "third")
	s.restart(t, syscall.SIGTERM, func() {})
	c.waitFor(t, "is still held", isHeld)
	if calls := r.rest(); len(calls) > 0 {
		t.Errorf("sent while suspended: %q", summarize(t, calls))
	}
	s.applySyncPolicy(t, "suspend: {pipelines: false}")
	c.expectAnyOrder(t, r, "+third", "-first")
}

// testRestart stops the server with both signals, and deletes objects before the next start.
func (s *testCluster) testRestart(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		a := s.newAudience(t, "restarted-"+fmt.Sprint(int(signal)))
		a.define(t, widgets)
		a.readyPipeline(t, patient, a.allSinks())
		a.create(t, "kept")
		a.create(t, "deleted")
		a.waitForPending(t, 3*3)
		a.mustSync(t, all)
		for format, r := range a.receivers {
			if len(r.Known()) != 3 {
				t.Errorf("%s has %q", format, r.Known())
			}
			r.rest()
		}
		s.restart(t, signal, func() { a.remove(t, "deleted") })
		a.mustSync(t, all)
		a.expect(t, restartedDeletes, nil, "")
		s.restart(t, signal, func() {
			a.Delete(t, "", a.definitions(widgets)...)
		})
		mirrortest.Eventually(t, "everything is deleted", func(context.Context) error {
			a.mustSync(t, all)
			for format, r := range a.receivers {
				if known := r.Known(); len(known) > 0 {
					return fmt.Errorf("%s has %q", format, known)
				}
			}
			return nil
		})
		for format, r := range a.receivers {
			if calls := r.rest(); len(calls) != 2 {
				t.Errorf("%s received %d calls, want 2", format, len(calls))
			}
		}
	}
}

// restartedDeletes are the calls for the deleted widget.
var restartedDeletes = wanted{
	whisperer: strings.ReplaceAll(instanceDelete[whisperer], "first", "deleted"),
	dotAI:     strings.ReplaceAll(instanceDelete[dotAI], "first", "deleted"),
	events:    strings.ReplaceAll(instanceDelete[events], "first", "deleted"),
}

const (
	// definitions is more than the maximum of a ClusterWhisperer call, which is scanLimit.
	definitions, scanLimit = 250, 200
)

// testManyDefinitions installs many definitions at once, and excludes them later. Deleting them would take kube-apiserver minutes.
func (s *testCluster) testManyDefinitions(t *testing.T) {
	c := s.newFixture(t, "crowded")
	r := receive(t, whisperer)
	lines := []string{"debounce: 10m\n  batch: {maxItems: 1000, maxWait: 5m}", noInstances, sinks(r.sink("index"))}
	c.readyPipeline(t, lines...)
	var manifests strings.Builder
	for i := range definitions {
		manifests.WriteString(c.manifest(fmt.Sprintf("w%ds", i), "one of many"))
	}
	if _, err := s.admin.Kubectl.Feed(t.Context(), manifests.String(), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.waitForPending(t, definitions)
	c.mustSync(t, all)
	c.expectScans(t, r, definitions, 0)
	c.readyPipeline(t, append(lines, "customResourceDefinitions: {include: [none."+c.group+"]}")...)
	c.mustSync(t, all)
	c.expectScans(t, r, 0, definitions)
	if known := r.Known(); len(known) > 0 {
		t.Errorf("receiver has %d definitions", len(known))
	}
}

// expectScans expects calls with these numbers of definitions, as large as possible.
func (c *fixture) expectScans(t *testing.T, r *receiver, upserts, deletes int) {
	t.Helper()
	var sizes []int
	gotUpserts, gotDeletes := 0, 0
	for _, call := range r.rest() {
		change := changes(t, call)
		sizes = append(sizes, len(change.Upserts)+len(change.Deletes))
		gotUpserts, gotDeletes = gotUpserts+len(change.Upserts), gotDeletes+len(change.Deletes)
	}
	if !slices.Equal(sizes, []int{scanLimit, definitions - scanLimit}) || gotUpserts != upserts || gotDeletes != deletes {
		t.Errorf("calls with %v names: %d upserts, %d deletes, want %d and %d", sizes, gotUpserts, gotDeletes, upserts, deletes)
	}
}

// forEach calls a function with each number below count, several at once.
func forEach(t *testing.T, count int, do func(ctx context.Context, number int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(writers)
	for number := range count {
		group.Go(func() error { return do(ctx, number) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (c *fixture) deleteConfigMaps(t *testing.T, from, count int) {
	t.Helper()
	forEach(t, count, func(ctx context.Context, number int) error {
		return c.admin.Client.CoreV1().ConfigMaps(c.name).Delete(ctx, many(from+number), metav1.DeleteOptions{})
	})
}
