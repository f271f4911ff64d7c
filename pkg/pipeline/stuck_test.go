// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// TestPollsPassASinkThatIsDown checks that polls continue while a run waits for a sink that is down, so that the others receive changes.
func TestPollsPassASinkThatIsDown(t *testing.T) {
	s := newFixture(t)
	search, audit := s.receiver(), s.receiver()
	p := inventory(sinkTo("search", search), sinkTo("audit", audit))
	p.Spec.Mode, p.Spec.PollInterval = v1alpha1.PipelineModePoll, &metav1.Duration{Duration: 5 * time.Minute}
	s.converges(p, search, audit)
	search.Always(receivertest.Close())
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
	s.reaches("the run waits for the sink", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.CurrentRun != nil && status.CurrentRun.Sinks[1].Done == 3 && status.Sinks[0].Failures > 0
	})
	s.cluster.put("two", "web")
	s.clock.SetTime(s.clock.Now().Add(10 * time.Minute))
	s.eventually("the new label is sent", func() error { return differs(level(audit, "web"), "two") })
}

// TestRunsPassAJobThatDoesNotEnd checks that a Job that does not end does not block other runs.
func TestRunsPassAJobThatDoesNotEnd(t *testing.T) {
	s := newFixture(t)
	audit := s.receiver()
	s.create(inventory(sinkTo("audit", audit), v1alpha1.PipelineSink{Name: "index", Job: &v1alpha1.JobSink{
		Namespace: "search", Template: runtime.RawExtension{Raw: []byte(template)},
	}}))
	s.start()
	s.knows(audit, coupons, named("web"), named("worker"))
	s.reaches("the next batch waits", func(status *v1alpha1.SyncPipelineStatus) bool {
		return strings.HasPrefix(status.Sinks[1].LastAnswer, "waits for the Job search/")
	})
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
	s.reaches("the run waits for the Job", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.CurrentRun != nil && status.CurrentRun.Sinks[0].Done == 3
	})
	calls := len(audit.Calls())
	s.ask("inventory", "request-2", v1alpha1.PipelineScopeInstances, true)
	s.eventually("the next one begins", func() error { return atLeast(len(audit.Calls()), calls+1) })
}

// TestRunEndsIfTheResponseWasLost checks that a status write whose response was lost does not block the next run.
func TestRunEndsIfTheResponseWasLost(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	s.converges(inventory(sinkTo("search", search)), search)
	s.api.AfterWrite(func(object runtime.Object) error {
		if p := object.(*v1alpha1.SyncPipeline); p.Status.LastRun != nil && p.Status.LastRun.ID == "request-1" {
			return errors.New("the response is lost")
		}
		return nil
	})
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
	s.ended("request-1")
	s.ask("inventory", "request-2", v1alpha1.PipelineScopeAll, true)
	s.ended("request-2")
}

// TestRunEndsWithoutARemovedSink checks that a run ends although one of its sinks was removed, or has another address.
func TestRunEndsWithoutARemovedSink(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.SyncPipeline, string){
		"removed":     func(p *v1alpha1.SyncPipeline, _ string) { p.Spec.Sinks = p.Spec.Sinks[:1] },
		"readdressed": func(p *v1alpha1.SyncPipeline, url string) { p.Spec.Sinks[1].HTTP.URL = url },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			audit, search, elsewhere := s.receiver(), s.receiver(), s.receiver()
			s.converges(inventory(sinkTo("audit", audit), sinkTo("search", search)), audit, search)
			search.Always(receivertest.Hang())
			s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
			s.reaches("the run waits for the sink", func(status *v1alpha1.SyncPipelineStatus) bool {
				return status.CurrentRun != nil && status.CurrentRun.Sinks[0].Done == 3
			})
			s.edit("inventory", func(p *v1alpha1.SyncPipeline) { edit(p, elsewhere.URL) })
			s.ended("request-1")
		})
	}
}

// TestPipelineIsRecreatedInARun checks that a pipeline does not continue the run of a deleted one with its name.
func TestPipelineIsRecreatedInARun(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	s.converges(inventory(sinkTo("search", search)), search)
	calls := len(search.Calls())
	search.Next(receivertest.Hang())
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
	s.eventually("the batch is sent", func() error { return atLeast(len(search.Calls()), calls+1) })
	s.remove("inventory")
	s.create(inventory(sinkTo("search", search)))
	status := s.reaches("all is delivered", func(status *v1alpha1.SyncPipelineStatus) bool {
		return len(status.Sinks) > 0 && status.Sinks[0].Delivered == 3 && status.Pending == 0
	})
	if status.CurrentRun != nil || status.LastRun != nil {
		t.Errorf("%+v", status)
	}
}

// TestRunWaitsForASinkThatWasGivenUp checks that a sink that was given up does not end the run that tries it again before it was tried.
func TestRunWaitsForASinkThatWasGivenUp(t *testing.T) {
	state := newSinkStatus("search")
	state.recordFailure("503 Service Unavailable", testkit.Noon)
	state.scheduleRetry(time.Time{})
	if !state.isStuck(false) {
		t.Error("a run waits for a sink that was given up")
	}
	state.tryNow()
	if state.isStuck(false) {
		t.Error("a run does not wait for the attempt that it has asked for")
	}
	if again := state.startAttempt(); !again || state.recordFailure("503 Service Unavailable", testkit.Noon) != 1 {
		t.Errorf("again: %t, status: %+v", again, state.status)
	}
}
