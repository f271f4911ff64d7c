// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// requested has somebody ask for a part of what a pipeline tells, and watch.
func (s *stage) requested(t *testing.T) {
	c := s.newScene(t, "requested")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.listens(t, patient, sinks(r.sink("index")))
	c.create(t, "first")
	c.waits(t, 2)

	run := c.synced(t, scoped(v1alpha1.PipelineScopeDefinitions))
	r.expect(t, `/api/v1/capabilities/scan {"upserts": ["widgets.requested.example.com"], "deletes": []}`)
	c.ran(t, run, v1alpha1.PipelineScopeDefinitions, 1)
	run = c.synced(t, scoped(v1alpha1.PipelineScopeInstances))
	r.hears(t, "+first")
	c.ran(t, run, v1alpha1.PipelineScopeInstances, 1)
	if run = c.synced(t, scoped(v1alpha1.PipelineScopeAll)); run.Total != 0 || len(r.rest()) > 0 {
		t.Errorf("what is known is told again: %+v", run)
	}

	c.Apply(t, c.manifest(widgets, "as it is now"))
	c.relabel(t, "first", "tier=back")
	c.waits(t, 2)
	run = c.synced(t, "")
	c.ran(t, run, v1alpha1.PipelineScopeAll, 2)
	c.paths(t, r, "/api/v1/capabilities/scan", "/api/v1/instances/sync")
	run = c.synced(t, `{"spec":{"full":true,"scope":"Instances"}}`)
	c.ran(t, run, v1alpha1.PipelineScopeInstances, 1)
	r.hears(t, "+first back")
	c.refused(t, c.eve, `{"spec":{"scope":"Everything"}}`, "spec.scope", "CustomResourceDefinitions", "Instances", "All")
	c.plugged(t, r)
	c.watched(t, r)
}

// ran expects what a run says of itself.
func (c *scene) ran(t *testing.T, run *v1alpha1.PipelineRun, scope v1alpha1.PipelineScope, total int64) {
	t.Helper()
	if run.Scope != scope || run.Actor != c.eve.Name || run.Phase != v1alpha1.PipelineRunFinished || run.FinishedAt == nil ||
		run.Total != total || run.Done != total {
		t.Errorf("the run says %+v, want %d objects of %s by %s", run, total, scope, c.eve.Name)
	}
	if len(run.Sinks) != 1 || run.Sinks[0].Name != "index" || run.Sinks[0].Total != total || run.Sinks[0].Done != total ||
		run.Sinks[0].Rejected != 0 || run.Sinks[0].Answer == "" {
		t.Errorf("of the sink, the run says %+v", run.Sinks)
	}
}

// paths expects what the receiver has been told since somebody last looked to have come to these, in any order.
func (c *scene) paths(t *testing.T, r *receiver, want ...string) {
	t.Helper()
	var got []string
	for _, call := range r.rest() {
		got = append(got, call.Path)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("calls of %q, want %q", got, want)
	}
}

// plugged has the plugin of kubectl ask, and tell what becomes of it.
func (c *scene) plugged(t *testing.T, r *receiver) {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	plugin := devcluster.Kubectl{User: c.eve.Kubectl.User}
	if plugin.Program, err = programs.Product(t.Context(), root, "cmd/kubectl-slipstream"); err != nil {
		t.Fatal(err)
	}
	c.relabel(t, "first", "tier=front")
	c.waits(t, 1)
	for _, test := range []struct{ scope, says string }{{"crds", "knew what there is"}, {"instances", "index took 1"}} {
		out, err := plugin.Run(t.Context(), "sync-pipeline", c.name, "--scope", test.scope)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, out, test.says)
	}
	r.hears(t, "+first front")
}

// watched looks at a run while its receiver takes one call and no more.
func (c *scene) watched(t *testing.T, r *receiver) {
	t.Helper()
	c.pipeline(t, "debounce: 10m\n  batch: {maxItems: 1, maxWait: 5m}", sinks(r.sink("index")))
	c.create(t, "second")
	c.waits(t, 1)
	c.synced(t, all)
	r.Next(receivertest.Status(http.StatusOK))
	r.Always(receivertest.Status(http.StatusServiceUnavailable))
	id := c.asks(t, full)
	c.becomes(t, "tells how far it has come", func(p *v1alpha1.SyncPipeline) error {
		run := p.Status.CurrentRun
		if run == nil || run.ID != id || run.Phase != v1alpha1.PipelineRunSending || run.Total != 3 || run.Done != 1 || !run.Full {
			return fmt.Errorf("of the run it says %+v", run)
		}
		if len(p.Status.PendingRequests) != 1 || p.Status.PendingRequests[0].ID != id || p.Status.PendingRequests[0].Actor != c.eve.Name {
			return fmt.Errorf("of requests it says %+v", p.Status.PendingRequests)
		}
		return nil
	})
	r.Always()
	run := c.finishes(t, id)
	if run.Total != 3 || run.Done != 3 || run.FinishedAt.Before(&run.StartedAt) {
		t.Errorf("the run says %+v", run)
	}
	c.becomes(t, "has no run any more", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.CurrentRun != nil || len(p.Status.PendingRequests) > 0 {
			return errors.New("it has")
		}
		return nil
	})
}

// suspended stops and resumes a pipeline.
func (s *stage) suspended(t *testing.T) {
	c := s.newScene(t, "suspended")
	r := receive(t, whisperer)
	c.define(t, widgets)
	lines := []string{prompt, noDefinitions, sinks(r.sink("index"))}
	c.listens(t, lines...)
	for _, name := range []string{"stays", "goes"} {
		c.create(t, name)
		r.hears(t, "+"+name)
	}

	c.pipeline(t, append(lines, "suspend: true")...)
	c.create(t, "comes")
	c.relabel(t, "stays", "tier=back")
	c.remove(t, "goes")
	c.refused(t, c.eve, all, "(Conflict)", "suspend")
	c.becomes(t, "says so", func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonSuspended)
	})
	c.says(t, "Suspended")
	if calls := r.rest(); len(calls) > 0 {
		t.Errorf("while it is suspended, it tells %q", story(t, calls))
	}

	c.listens(t, append(lines, "suspend: false")...)
	c.synced(t, all)
	got := story(t, r.rest())
	slices.Sort(got)
	if want := []string{"+comes", "+stays back", "-goes"}; !slices.Equal(got, want) {
		t.Errorf("resumed, it tells %q, want %q", got, want)
	}
}

// pollInterval is as short as it may be.
const pollInterval = 10 * time.Second

// polled has a pipeline that watches nothing.
func (s *stage) polled(t *testing.T) {
	c := s.newScene(t, "polled")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.create(t, "first", "tier=front")
	c.listens(t, fmt.Sprintf("mode: Poll\n  pollInterval: %s\n  debounce: 10m\n  batch: {maxWait: 0s}", pollInterval), noDefinitions,
		sinks(r.sink("index")))
	r.hears(t, "+first front")
	c.relabel(t, "first", "tier=back")
	c.create(t, "second")
	var got []string
	mirrortest.Eventually(t, "a poll finds out", func(context.Context) error {
		got = append(got, story(t, r.rest())...)
		if len(got) < 2 {
			return fmt.Errorf("it told %q", got)
		}
		return nil
	})
	slices.Sort(got)
	if want := []string{"+first back", "+second"}; !slices.Equal(got, want) {
		t.Errorf("it told %q, want %q", got, want)
	}
	c.remove(t, "first")
	r.hears(t, "-first")

	verbs := map[string]int{}
	for _, event := range audited(t, s.AuditLog(), func(event *auditv1.Event) bool {
		return event.User.Username == people.Server && event.ObjectRef != nil && event.ObjectRef.APIGroup == c.group
	}) {
		verbs[event.Verb]++
	}
	if verbs["watch"] > 0 || verbs["list"] < 3 {
		t.Errorf("of the widgets, the server has asked for %v", verbs)
	}
}

// redirected gives a pipeline another receiver, and one more.
func (s *stage) redirected(t *testing.T) {
	c := s.newScene(t, "redirected")
	first, second, third := receive(t, whisperer), receive(t, whisperer), receive(t, whisperer)
	c.define(t, widgets)
	c.listens(t, prompt, noDefinitions, sinks(first.sink("index")))
	c.create(t, "one")
	first.hears(t, "+one")

	c.listens(t, prompt, noDefinitions, sinks(second.sink("index")))
	second.hears(t, "+one")
	c.create(t, "two")
	second.hears(t, "+two")

	c.listens(t, prompt, noDefinitions, sinks(second.sink("index"), third.sink("other")))
	c.becomes(t, "tells the third of both", func(*v1alpha1.SyncPipeline) error {
		if got := story(t, third.accepted()); len(got) < 2 {
			return fmt.Errorf("it was told %q", got)
		}
		return nil
	})
	c.remove(t, "one")
	second.hears(t, "-one")
	c.sinkBecomes(t, "other", "knows what there is", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Delivered != 1 || sink.Pending != 0 {
			return fmt.Errorf("it knows %d, and %d wait", sink.Delivered, sink.Pending)
		}
		return nil
	})
	if calls := first.rest(); len(calls) > 0 {
		t.Errorf("who is no receiver any more is told %q", story(t, calls))
	}
}

// doubled has two pipelines tell two receivers of the same, each in its own time, until one is deleted.
func (s *stage) doubled(t *testing.T) {
	c := s.newScene(t, "doubled")
	other := s.newScene(t, "doubled-other")
	other.group = c.group
	quick, slow := receive(t, whisperer), receive(t, whisperer)
	c.define(t, widgets)
	c.listens(t, prompt, noDefinitions, sinks(quick.sink("index")))
	other.listens(t, patient, noDefinitions, sinks(slow.sink("index")))
	c.create(t, "first", "tier=front")
	quick.hears(t, "+first front")
	c.relabel(t, "first", "tier=back")
	quick.hears(t, "+first back")
	other.waits(t, 1)
	if calls := slow.Calls(); len(calls) > 0 {
		t.Errorf("the slow one is told %q", story(t, calls))
	}
	other.synced(t, all)
	slow.hears(t, "+first back")

	c.Run(t, "delete", "pipe", c.name)
	c.create(t, "second")
	other.waits(t, 1)
	other.synced(t, all)
	slow.hears(t, "+second")
	if calls := quick.rest(); len(calls) > 0 {
		t.Errorf("a pipeline that is gone tells %q", story(t, calls))
	}

	// A pipeline of the same name knows nothing of the one before.
	c.listens(t, patient, noDefinitions, sinks(quick.sink("index")))
	c.synced(t, all)
	got := story(t, quick.rest())
	slices.Sort(got)
	if want := []string{"+first back", "+second"}; !slices.Equal(got, want) {
		t.Errorf("the new pipeline tells %q, want %q", got, want)
	}
}
