// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// converges creates a pipeline, starts a process and waits until the receivers have everything.
func (s *fixture) converges(p *v1alpha1.SyncPipeline, receivers ...*receivertest.Receiver) {
	s.Helper()
	s.create(p)
	s.start()
	for _, receiver := range receivers {
		s.knows(receiver, coupons, named("web"), named("worker"))
	}
	s.reaches("all is delivered", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.Pending == 0 && len(status.Sinks) > 0 && status.Sinks[0].Delivered == 3
	})
}

// ended waits until the run of a request has finished.
func (s *fixture) ended(id string) *v1alpha1.PipelineRun {
	s.Helper()
	status := s.reaches("the run "+id+" ends", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.LastRun != nil && status.LastRun.ID == id
	})
	if len(status.PendingRequests) != 0 || status.LastRun.FinishedAt == nil || status.LastRun.Phase != v1alpha1.PipelineRunFinished {
		s.Errorf("%+v", status)
	}
	return status.LastRun
}

// TestRequests checks what the run of a request sends.
func TestRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		scope v1alpha1.PipelineScope
		full  bool
		// changed is set if an object has just been changed.
		changed bool
		want    int64
	}{
		"nothing differs":     {scope: v1alpha1.PipelineScopeAll},
		"what differs":        {scope: v1alpha1.PipelineScopeAll, changed: true, want: 1},
		"not what was chosen": {scope: v1alpha1.PipelineScopeDefinitions, changed: true},
		"everything":          {scope: v1alpha1.PipelineScopeAll, full: true, want: 3},
		"all definitions":     {scope: v1alpha1.PipelineScopeDefinitions, full: true, want: 1},
		"all instances":       {scope: v1alpha1.PipelineScopeInstances, full: true, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			search := s.receiver()
			p := inventory(sinkTo("search", search))
			p.Spec.Debounce = &metav1.Duration{Duration: 10 * time.Minute}
			s.create(p)
			s.start()
			s.ask("inventory", "request-0", v1alpha1.PipelineScopeAll, false)
			s.knows(search, coupons, named("web"), named("worker"))
			s.ended("request-0")
			if tt.changed {
				s.cluster.put("two", "web")
			}
			s.ask("inventory", "request-1", tt.scope, tt.full)
			run := s.ended("request-1")
			if run.Actor != "jane" || run.Scope != tt.scope || run.Full != tt.full || run.Total != tt.want || run.Done != tt.want {
				t.Errorf("run = %+v", run)
			}
			if len(run.Sinks) != 1 || run.Sinks[0].Total != tt.want || run.Sinks[0].Name != "search" {
				t.Errorf("%+v", run.Sinks)
			}
			want := fmt.Sprintf("Normal Synced: The sync that jane asked for has ended: %d object", tt.want)
			s.eventually("an Event of the run", func() error { return contains(s.events.Lines(), want) })
		})
	}
}

// TestRunShowsItsProgress checks that the status shows the progress of a run and the responses of sinks.
func TestRunShowsItsProgress(t *testing.T) {
	s := newFixture(t)
	search, audit := s.receiver(), s.receiver()
	p := inventory(sinkTo("search", search), sinkTo("audit", audit))
	p.Spec.Batch.MaxItems = ptr.To[int32](1)
	s.converges(p, search, audit)
	gate := make(chan struct{})
	search.Next(receivertest.Gate(gate))
	audit.Always(receivertest.Status(400).With("full"))
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
	s.reaches("one has ended", func(status *v1alpha1.SyncPipelineStatus) bool {
		run := status.CurrentRun
		return run != nil && run.ID == "request-1" && run.Phase == v1alpha1.PipelineRunSending && run.Total == 6 && run.Done == 3 &&
			run.Sinks[0].Done == 0 && run.Sinks[1].Rejected == 3 && strings.Contains(run.Sinks[1].Answer, "full")
	})
	if pending := s.pipeline("inventory").Status.PendingRequests; len(pending) != 1 {
		t.Errorf("pending requests = %v", pending)
	}
	close(gate)
	run := s.ended("request-1")
	if run.Done != 6 || run.Sinks[0].Done != 3 || run.Sinks[0].Rejected != 0 {
		t.Errorf("run = %+v", run)
	}
	s.eventually("an Event of the run", func() error {
		return contains(s.events.Lines(), "Warning SyncedPartly: The sync that jane asked for has ended: 3 objects sent to search, "+
			"3 objects sent to audit, of which it refused 3")
	})
}

// TestRunsPassASinkThatIsDown checks that a sink that is down delays neither the next request nor resyncs of the other sinks.
func TestRunsPassASinkThatIsDown(t *testing.T) {
	s := newFixture(t)
	search, audit := s.receiver(), s.receiver()
	s.converges(inventory(sinkTo("search", search), sinkTo("audit", audit)), search, audit)
	search.Always(receivertest.Close())
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
	s.reaches("the run waits for the sink", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.CurrentRun != nil && status.CurrentRun.Sinks[1].Done == 3 && status.Sinks[0].Failures > 0
	})
	s.pass(60)
	if status := s.pipeline("inventory").Status; status.CurrentRun == nil {
		t.Errorf("run has ended although no other request is pending: %+v", status.LastRun)
	}
	s.ask("inventory", "request-2", v1alpha1.PipelineScopeInstances, true)
	run := s.reaches("the next one begins", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.LastRun != nil && status.LastRun.ID == "request-1" && status.CurrentRun != nil && status.CurrentRun.ID == "request-2"
	}).LastRun
	if run.Sinks[0].Done != 0 || run.Sinks[0].Total != 3 || run.Sinks[0].Answer == "" {
		t.Errorf("%+v", run.Sinks)
	}
	search.Always()
	s.ended("request-2")
	s.reaches("all is delivered", func(status *v1alpha1.SyncPipelineStatus) bool { return status.Pending == 0 && status.CurrentRun == nil })
}

// TestRequestsDoNotWaitForAResync checks that a request does not wait for the end of a resync with a slow sink.
func TestRequestsDoNotWaitForAResync(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	p := inventory(sinkTo("search", search))
	p.Spec.ResyncInterval = &metav1.Duration{Duration: time.Hour}
	s.converges(p, search)
	gate := make(chan struct{})
	search.Next(receivertest.Gate(gate))
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	s.reaches("all objects are sent again", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.CurrentRun != nil && status.CurrentRun.Phase == v1alpha1.PipelineRunSending
	})
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, false)
	resync := s.reaches("the request is taken up", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.CurrentRun != nil && status.CurrentRun.ID == "request-1"
	}).LastRun
	if resync == nil || resync.Actor != "" || resync.Total != 3 || resync.Done == 3 {
		t.Errorf("resync = %+v", resync)
	}
	close(gate)
	s.ended("request-1")
	s.reaches("all is delivered", func(status *v1alpha1.SyncPipelineStatus) bool { return status.Pending == 0 && status.CurrentRun == nil })
}

// TestResync checks that everything is sent again after resyncInterval.
func TestResync(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	p := inventory(sinkTo("search", search))
	p.Spec.ResyncInterval = &metav1.Duration{Duration: time.Hour}
	s.converges(p, search)
	created := s.pipeline("inventory").CreationTimestamp
	var begun []time.Time
	for range 2 {
		before := len(search.Calls())
		s.clock.SetTime(s.clock.Now().Add(time.Hour))
		status := s.reaches("all objects are sent again", func(status *v1alpha1.SyncPipelineStatus) bool {
			return status.LastRun != nil && status.CurrentRun == nil && status.LastResyncTime != nil &&
				(len(begun) == 0 || status.LastResyncTime.After(begun[len(begun)-1]))
		})
		run := status.LastRun
		if run.Actor != "" || !run.Full || run.Total != 3 || run.Done != 3 || len(search.Calls()) == before {
			t.Errorf("run = %+v", run)
		}
		begun = append(begun, status.LastResyncTime.Time)
	}
	if begun[0].Sub(created.Time) < time.Hour || begun[1].Sub(begun[0]) < time.Hour {
		t.Errorf("created at %v, sent again at %v", created, begun)
	}
	for _, line := range s.events.Lines() {
		if strings.Contains(line, "Synced") {
			t.Errorf("unexpected Event: %s", line)
		}
	}
}

// TestPoll checks that nothing is watched in mode Poll.
func TestPoll(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	p := inventory(sinkTo("search", search))
	p.Spec.Mode, p.Spec.PollInterval = v1alpha1.PipelineModePoll, &metav1.Duration{Duration: 5 * time.Minute}
	s.converges(p, search)
	s.cluster.put("two", "web")
	s.cluster.remove("worker")
	s.knows(search, coupons, named("web"))
	if diff := cmp.Diff("two", level(search, "web")); diff != "" {
		t.Error(diff)
	}
	for _, action := range s.cluster.meta.Actions() {
		if action.GetVerb() == "watch" && action.GetResource() == configMaps {
			t.Error("ConfigMaps are watched in mode Poll")
		}
	}
}
