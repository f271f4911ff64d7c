// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// TestNextProcessSendsWhatWasMissed checks that the next process sends deletions that happened meanwhile, and nothing else again.
func TestNextProcessSendsWhatWasMissed(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	s.converges(inventory(sinkTo("search", search)), search)
	s.stop()
	s.start()
	s.pass(60)
	calls := len(search.Calls())
	s.stop()
	s.cluster.remove("worker")
	s.start()
	s.knows(search, coupons, named("web"))
	if more := len(search.Calls()) - calls; more != 1 {
		t.Errorf("%d calls for one deletion", more)
	}
}

// TestBatchOnItsWayIsRepeated checks that a batch that was in flight when the process died is sent again unchanged.
func TestBatchOnItsWayIsRepeated(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	p := inventory(sinkTo("search", search))
	p.Spec.CustomResourceDefinitions.Enabled = new(bool)
	s.create(p)
	search.Next(receivertest.Hang())
	s.start()
	s.eventually("the batch is sent", func() error { return atLeast(len(search.Calls()), 1) })
	s.stop()
	s.start()
	s.knows(search, named("web"), named("worker"))
	calls := search.Calls()
	if calls[0].Header.Get("Ce-Id") != calls[1].Header.Get("Ce-Id") || string(calls[0].Body) != string(calls[1].Body) {
		t.Errorf("%s %s, then %s %s", calls[0].Header.Get("Ce-Id"), calls[0].Body, calls[1].Header.Get("Ce-Id"), calls[1].Body)
	}
}

// TestInterruptedRunIsRepeated checks that the run of a request, and a resync, are repeated if the process ends before they do.
func TestInterruptedRunIsRepeated(t *testing.T) {
	for name, tt := range map[string]struct{ requested bool }{"of a request": {true}, "a resync": {false}} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			search := s.receiver()
			p := inventory(sinkTo("search", search))
			if !tt.requested {
				p.Spec.ResyncInterval = &metav1.Duration{Duration: time.Hour}
			}
			s.converges(p, search)
			calls := len(search.Calls())
			search.Next(receivertest.Hang())
			if tt.requested {
				s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
			} else {
				s.clock.SetTime(s.clock.Now().Add(time.Hour))
			}
			begun := s.reaches("the run begins", func(status *v1alpha1.SyncPipelineStatus) bool {
				return status.CurrentRun != nil && status.CurrentRun.Phase == v1alpha1.PipelineRunSending && status.CurrentRun.Total > 0
			}).CurrentRun
			s.await("the batch is sent", func() error { return atLeast(len(search.Calls()), calls+1) })
			s.stop()
			s.start()
			run := s.reaches("the run ends", func(status *v1alpha1.SyncPipelineStatus) bool { return status.LastRun != nil }).LastRun
			if run.Actor != begun.Actor || !run.Full || run.Total < 3 || run.Done != run.Total || tt.requested && run.ID != begun.ID {
				t.Errorf("%+v", run)
			}
		})
	}
}

// TestFailuresAreRemembered checks that the next process knows the failures of a sink.
func TestFailuresAreRemembered(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	search.Always(receivertest.Status(503))
	s.create(inventory(sinkTo("search", search)))
	s.start()
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonDeliveryFailed)
	s.stop()
	before := s.pipeline("inventory").Status.Sinks[0].Failures
	s.start()
	s.reaches("the sink is retried", func(status *v1alpha1.SyncPipelineStatus) bool { return status.Sinks[0].Failures > before })
	search.Always()
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
	if events := s.events.Lines(); len(events) != 2 {
		t.Errorf("Events = %q", events)
	}
}

// TestStoreIsFull checks that a store that rejects writes delays deliveries, that nothing is lost, and that deliveries continue by
// themselves.
func TestStoreIsFull(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	p := inventory(sinkTo("search", search))
	p.Spec.Sinks[0].Retry.MaxAttempts = ptr.To[int32](1)
	s.converges(p, search)
	calls := len(search.Calls())
	s.full.Store(true)
	s.cluster.put("two", "web")
	s.reaches("the failure is shown", func(status *v1alpha1.SyncPipelineStatus) bool {
		return strings.Contains(status.LastError, "the disk is full") && status.Sinks[0].NextAttemptTime != nil
	})
	if again := len(search.Calls()); again != calls {
		t.Errorf("%d calls with changes that are not stored", again-calls)
	}
	s.full.Store(false)
	s.eventually("the new label is sent", func() error { return differs(level(search, "web"), "two") })
	s.reaches("the failure is over", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.LastError == "" && status.Sinks[0].LastError == nil
	})
}
