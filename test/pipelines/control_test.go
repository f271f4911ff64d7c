// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// testRequests requests syncs with several scopes, and follows a run.
func (s *testCluster) testRequests(t *testing.T) {
	c := s.newFixture(t, "requested")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.readyPipeline(t, patient, sinks(r.sink("index")))
	c.create(t, "first")
	c.waitForPending(t, 2)

	run := c.mustSync(t, scoped(v1alpha1.PipelineScopeDefinitions))
	r.expect(t, `/api/v1/capabilities/scan {"upserts": ["widgets.requested.example.com"], "deletes": []}`)
	c.expectRun(t, run, v1alpha1.PipelineScopeDefinitions, 1)
	run = c.mustSync(t, scoped(v1alpha1.PipelineScopeInstances))
	r.waitForChanges(t, "+first")
	c.expectRun(t, run, v1alpha1.PipelineScopeInstances, 1)
	if run = c.mustSync(t, scoped(v1alpha1.PipelineScopeAll)); run.Total != 0 || len(r.rest()) > 0 {
		t.Errorf("unchanged objects were sent again: %+v", run)
	}

	c.Apply(t, c.manifest(widgets, "as it is now"))
	c.relabel(t, "first", "tier=back")
	c.waitForPending(t, 2)
	run = c.mustSync(t, "")
	c.expectRun(t, run, v1alpha1.PipelineScopeAll, 2)
	c.expectPaths(t, r, "/api/v1/capabilities/scan", "/api/v1/instances/sync")
	run = c.mustSync(t, `{"spec":{"full":true,"scope":"Instances"}}`)
	c.expectRun(t, run, v1alpha1.PipelineScopeInstances, 1)
	r.waitForChanges(t, "+first back")
	c.expectRefused(t, c.eve, `{"spec":{"scope":"Everything"}}`, "spec.scope", "CustomResourceDefinitions", "Instances", "All")
	c.testPlugin(t, r)
	c.testCurrentRun(t, r)
}

// expectRun checks the fields of a finished run.
func (c *fixture) expectRun(t *testing.T, run *v1alpha1.PipelineRun, scope v1alpha1.PipelineScope, total int64) {
	t.Helper()
	if run.Scope != scope || run.Actor != c.eve.Name || run.Phase != v1alpha1.PipelineRunFinished || run.FinishedAt == nil ||
		run.Total != total || run.Done != total {
		t.Errorf("run = %+v, want %d objects of %s by %s", run, total, scope, c.eve.Name)
	}
	if len(run.Sinks) != 1 || run.Sinks[0].Name != "index" || run.Sinks[0].Total != total || run.Sinks[0].Done != total ||
		run.Sinks[0].Rejected != 0 || run.Sinks[0].Answer == "" {
		t.Errorf("sinks of the run = %+v", run.Sinks)
	}
}

// expectPaths expects the paths of the unread calls, in any order.
func (c *fixture) expectPaths(t *testing.T, r *receiver, want ...string) {
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

// testPlugin requests syncs with the plugin of kubectl.
func (c *fixture) testPlugin(t *testing.T, r *receiver) {
	t.Helper()
	plugin := clustertest.Plugin(t, c.eve.Kubectl.User)
	c.relabel(t, "first", "tier=front")
	c.waitForPending(t, 1)
	for _, test := range []struct{ scope, message string }{{"crds", "knew what there is"}, {"instances", "index took 1"}} {
		out, err := plugin.Run(t.Context(), "sync-pipeline", c.name, "--scope", test.scope)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, out, test.message)
	}
	r.waitForChanges(t, "+first front")
}

// testCurrentRun checks the status of a run while its receiver accepts only one call.
func (c *fixture) testCurrentRun(t *testing.T, r *receiver) {
	t.Helper()
	c.pipeline(t, "debounce: 10m\n  batch: {maxItems: 1, maxWait: 5m}", sinks(r.sink("index")))
	c.create(t, "second")
	c.waitForPending(t, 1)
	c.mustSync(t, all)
	r.Next(receivertest.Status(http.StatusOK))
	r.Always(receivertest.Status(http.StatusServiceUnavailable))
	id := c.mustRequest(t, full)
	c.waitFor(t, "reports the progress", func(p *v1alpha1.SyncPipeline) error {
		run := p.Status.CurrentRun
		if run == nil || run.ID != id || run.Phase != v1alpha1.PipelineRunSending || run.Total != 3 || run.Done != 1 || !run.Full {
			return fmt.Errorf("currentRun = %+v", run)
		}
		if len(p.Status.PendingRequests) != 1 || p.Status.PendingRequests[0].ID != id || p.Status.PendingRequests[0].Actor != c.eve.Name {
			return fmt.Errorf("pendingRequests = %+v", p.Status.PendingRequests)
		}
		return nil
	})
	r.Always()
	run := c.waitForRun(t, id)
	if run.Total != 3 || run.Done != 3 || run.FinishedAt.Before(&run.StartedAt) {
		t.Errorf("run = %+v", run)
	}
	c.waitFor(t, "has no current run", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.CurrentRun != nil || len(p.Status.PendingRequests) > 0 {
			return errors.New("run or request is left")
		}
		return nil
	})
}

// testSuspend suspends and resumes a pipeline.
func (s *testCluster) testSuspend(t *testing.T) {
	c := s.newFixture(t, "suspended")
	r := receive(t, whisperer)
	c.define(t, widgets)
	lines := []string{prompt, noDefinitions, sinks(r.sink("index"))}
	c.readyPipeline(t, lines...)
	for _, name := range []string{"changed", "deleted"} {
		c.create(t, name)
		r.waitForChanges(t, "+"+name)
	}
	c.waitForDelivered(t, 2)

	c.pipeline(t, append(lines, "suspend: true")...)
	c.create(t, "created")
	c.relabel(t, "changed", "tier=back")
	c.remove(t, "deleted")
	c.expectRefused(t, c.eve, all, "(Conflict)", "suspend")
	c.waitFor(t, "reports the suspension", func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonSuspended)
	})
	c.waitForStatus(t, "Suspended")
	if calls := r.rest(); len(calls) > 0 {
		t.Errorf("sent while suspended: %q", summarize(t, calls))
	}

	c.readyPipeline(t, append(lines, "suspend: false")...)
	c.mustSync(t, all)
	got := summarize(t, r.rest())
	slices.Sort(got)
	if want := []string{"+changed back", "+created", "-deleted"}; !slices.Equal(got, want) {
		t.Errorf("sent after the suspension: %q, want %q", got, want)
	}
}

// pollInterval is the shortest that a spec allows.
const pollInterval = 10 * time.Second

// testPoll tests a pipeline in mode Poll, which opens no watches.
func (s *testCluster) testPoll(t *testing.T) {
	c := s.newFixture(t, "polled")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.create(t, "first", "tier=front")
	c.readyPipeline(t, fmt.Sprintf("mode: Poll\n  pollInterval: %s\n  debounce: 10m\n  batch: {maxWait: 0s}", pollInterval), noDefinitions,
		sinks(r.sink("index")))
	r.waitForChanges(t, "+first front")
	c.relabel(t, "first", "tier=back")
	c.create(t, "second")
	var got []string
	mirrortest.Eventually(t, "a poll finds the changes", func(context.Context) error {
		got = append(got, summarize(t, r.rest())...)
		if len(got) < 2 {
			return fmt.Errorf("received %q", got)
		}
		return nil
	})
	slices.Sort(got)
	if want := []string{"+first back", "+second"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	c.remove(t, "first")
	r.waitForChanges(t, "-first")

	verbs := map[string]int{}
	for _, event := range audited(t, s.AuditLog(), func(event *auditv1.Event) bool {
		return event.User.Username == people.Server && event.ObjectRef != nil && event.ObjectRef.APIGroup == c.group
	}) {
		verbs[event.Verb]++
	}
	if verbs["watch"] > 0 || verbs["list"] < 3 {
		t.Errorf("requests of the server for widgets: %v", verbs)
	}
}

// testChangedSinks replaces the receiver of a pipeline, and adds another one.
func (s *testCluster) testChangedSinks(t *testing.T) {
	c := s.newFixture(t, "redirected")
	first, second, third := receive(t, whisperer), receive(t, whisperer), receive(t, whisperer)
	c.define(t, widgets)
	c.readyPipeline(t, prompt, noDefinitions, sinks(first.sink("index")))
	c.create(t, "one")
	first.waitForChanges(t, "+one")

	c.readyPipeline(t, prompt, noDefinitions, sinks(second.sink("index")))
	second.waitForChanges(t, "+one")
	c.create(t, "two")
	second.waitForChanges(t, "+two")

	c.readyPipeline(t, prompt, noDefinitions, sinks(second.sink("index"), third.sink("other")))
	c.waitFor(t, "has sent both to the third receiver", func(*v1alpha1.SyncPipeline) error {
		if got := summarize(t, third.accepted()); len(got) < 2 {
			return fmt.Errorf("received %q", got)
		}
		return nil
	})
	c.remove(t, "one")
	second.waitForChanges(t, "-one")
	c.waitForSink(t, "other", "has all objects", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Delivered != 1 || sink.Pending != 0 {
			return fmt.Errorf("%d delivered, %d pending", sink.Delivered, sink.Pending)
		}
		return nil
	})
	if calls := first.rest(); len(calls) > 0 {
		t.Errorf("removed receiver got %q", summarize(t, calls))
	}
}

// testIndependentPipelines has two pipelines send the same objects to two receivers, until one pipeline is deleted.
func (s *testCluster) testIndependentPipelines(t *testing.T) {
	c := s.newFixture(t, "doubled")
	other := s.newFixture(t, "doubled-other")
	other.group = c.group
	quick, slow := receive(t, whisperer), receive(t, whisperer)
	c.define(t, widgets)
	c.readyPipeline(t, prompt, noDefinitions, sinks(quick.sink("index")))
	other.readyPipeline(t, patient, noDefinitions, sinks(slow.sink("index")))
	c.create(t, "first", "tier=front")
	quick.waitForChanges(t, "+first front")
	c.relabel(t, "first", "tier=back")
	quick.waitForChanges(t, "+first back")
	other.waitForPending(t, 1)
	if calls := slow.Calls(); len(calls) > 0 {
		t.Errorf("the slow receiver got %q", summarize(t, calls))
	}
	other.mustSync(t, all)
	slow.waitForChanges(t, "+first back")

	c.Delete(t, "", "pipe/"+c.name)
	mirrortest.Eventually(t, "the deleted pipeline has ended", func(ctx context.Context) error {
		metrics, err := c.ReadServer(ctx, "/metrics")
		if err == nil && strings.Contains(metrics, fmt.Sprintf("slipstream_pipeline_deliveries_total{pipeline=%q", c.name)) {
			return errors.New("its metrics are left")
		}
		return err
	})
	c.create(t, "second")
	other.waitForPending(t, 1)
	other.mustSync(t, all)
	slow.waitForChanges(t, "+second")
	if calls := quick.rest(); len(calls) > 0 {
		t.Errorf("sent after the pipeline was deleted: %q", summarize(t, calls))
	}

	// A new pipeline of the same name starts without the state of the deleted one.
	c.readyPipeline(t, patient, noDefinitions, sinks(quick.sink("index")))
	c.mustSync(t, all)
	got := summarize(t, quick.rest())
	slices.Sort(got)
	if want := []string{"+first back", "+second"}; !slices.Equal(got, want) {
		t.Errorf("sent by the new pipeline: %q, want %q", got, want)
	}
}
