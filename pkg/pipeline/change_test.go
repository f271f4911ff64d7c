// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// TestHeld checks everything that holds a pipeline, and that it continues afterwards.
func TestHeld(t *testing.T) {
	suspend := func(suspended bool) func(*fixture) {
		return func(s *fixture) { s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Suspend = suspended }) }
	}
	for name, tt := range map[string]struct {
		stop, resume func(*fixture)
		reason       string
		stalled      bool
	}{
		"suspended": {suspend(true), suspend(false), v1alpha1.ReasonSuspended, false},
		"switched off": {
			func(s *fixture) { s.switchOff(true) }, func(s *fixture) { s.switchOff(false) }, v1alpha1.ReasonPipelinesSuspended, false,
		},
		"not permitted any more": {
			func(s *fixture) { s.reviewer.Deny("", `user "eve" may not list configmaps in the whole cluster`) },
			func(s *fixture) { s.reviewer.Allow() }, v1alpha1.ReasonPermissionLost, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			search := s.receiver()
			p := inventory(sinkTo("search", search))
			p.Status.EditedBy = &v1alpha1.AutomatedBy{Username: "eve", Time: metav1.NewTime(noon)}
			s.converges(p, search)
			tt.stop(s)
			why := s.says(v1alpha1.ConditionReady, tt.reason)
			s.says(v1alpha1.ConditionSinksDelivering, tt.reason)
			stalled := conditionOf(&s.pipeline("inventory").Status, v1alpha1.ConditionStalled) != nil
			if stalled != tt.stalled || why.Message == "" {
				t.Errorf("stalled = %v, message = %q", stalled, why.Message)
			}
			s.cluster.put("two", "web")
			s.cluster.remove("worker")
			calls := len(search.Calls())
			s.pass(300)
			if again := len(search.Calls()); again != calls {
				t.Errorf("%d calls while the pipeline is held", again-calls)
			}
			// The next process must hold it, too.
			s.stop()
			s.start()
			s.pass(60)
			tt.resume(s)
			s.knows(search, coupons, named("web"))
			s.eventually("the new label is sent", func() error { return differs(level(search, "web"), "two") })
			s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
		})
	}
}

// TestPermissionsAreUnknown checks that a running pipeline continues while permissions cannot be checked, and a new one does not start.
func TestPermissionsAreUnknown(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	p := inventory(sinkTo("search", search))
	p.Status.EditedBy = &v1alpha1.AutomatedBy{Username: "eve", Time: metav1.NewTime(noon)}
	s.reviewer.Fail("", errors.New("no answer"))
	s.create(p)
	s.start()
	why := s.says(v1alpha1.ConditionReconciling, v1alpha1.ReasonProgressing)
	s.reaches("the last error is shown", func(status *v1alpha1.SyncPipelineStatus) bool {
		return strings.Contains(status.LastError, "no answer")
	})
	if !strings.Contains(why.Message, "is being determined") || len(search.Calls()) > 0 {
		t.Errorf("message = %q, %d calls", why.Message, len(search.Calls()))
	}
	s.reviewer.Allow()
	s.knows(search, coupons, named("web"), named("worker"))
	s.reviewer.Fail("", errors.New("no answer"))
	s.pass(60)
	s.cluster.put("two", "web")
	s.eventually("the new label is sent", func() error { return differs(level(search, "web"), "two") })
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
}

// TestTypesThatAppearLaterAreReviewedFirst checks that objects of a type that appears are sent only after a review says that the user may
// list them.
func TestTypesThatAppearLaterAreReviewedFirst(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	p := inventory(sinkTo("search", search))
	p.Spec.Instances.Resources = []string{"configmaps", "secrets"}
	p.Status.EditedBy = &v1alpha1.AutomatedBy{Username: "eve", Time: metav1.NewTime(noon)}
	s.create(p)
	s.start()
	s.knows(search, coupons, named("web"), named("worker"))

	s.reviewer.Fail("", errors.New("no answer"))
	s.cluster.serveSecrets()
	s.await("Secrets are discovered", func() error {
		if chosen, _ := s.types.Snapshot().Resolve(watch.Selection{Resources: []string{"secrets"}}, watch.Policy{}); len(chosen) != 1 {
			return fmt.Errorf("types: %v", chosen)
		}
		return nil
	})
	reviews := len(s.reviewer.Reviewed())
	s.eventually("permissions are reviewed again", func() error { return atLeast(len(s.reviewer.Reviewed()), reviews+1) })
	// The types that were reviewed before are sent as before.
	s.cluster.put("two", "web")
	s.eventually("the new label is sent", func() error { return differs(level(search, "web"), "two") })
	s.pass(60)
	s.knows(search, coupons, named("web"), named("worker"))

	s.reviewer.Allow()
	s.knows(search, coupons, named("web"), named("worker"), "shop/v1/Secret/token")
}

// TestRequestOutlivesSuspension checks that a request that is pending while the pipeline is suspended is completed afterwards.
func TestRequestOutlivesSuspension(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	s.converges(inventory(sinkTo("search", search)), search)
	calls := len(search.Calls())
	search.Next(receivertest.Hang())
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
	s.reaches("the run begins", func(status *v1alpha1.SyncPipelineStatus) bool { return status.CurrentRun != nil })
	s.eventually("the batch is sent", func() error { return atLeast(len(search.Calls()), calls+1) })
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Suspend = true })
	status := s.reaches("the run is interrupted", func(status *v1alpha1.SyncPipelineStatus) bool { return status.CurrentRun == nil })
	if len(status.PendingRequests) != 1 || status.LastRun != nil {
		t.Errorf("%+v", status)
	}
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Suspend = false })
	// The batch in flight is sent again, and its objects again with the rest.
	if run := s.ended("request-1"); run.Done < 3 || run.Done != run.Total {
		t.Errorf("%+v", run)
	}
}

// TestSinksChange checks that a new sink, or one with another address, receives everything, and the others nothing again.
func TestSinksChange(t *testing.T) {
	s := newFixture(t)
	search, audit, elsewhere := s.receiver(), s.receiver(), s.receiver()
	s.converges(inventory(sinkTo("search", search)), search)
	calls := len(search.Calls())
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Sinks = append(p.Spec.Sinks, sinkTo("audit", audit)) })
	s.knows(audit, coupons, named("web"), named("worker"))
	if again := len(search.Calls()); again != calls {
		t.Errorf("other sink received %d repeated calls", again-calls)
	}
	before := len(audit.Calls())
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Sinks[0].HTTP.URL = elsewhere.URL })
	s.knows(elsewhere, coupons, named("web"), named("worker"))
	s.cluster.remove("worker")
	s.knows(elsewhere, coupons, named("web"))
	s.knows(audit, coupons, named("web"))
	if len(search.Calls()) != calls || len(audit.Calls()) == before {
		t.Errorf("%d calls of the removed sink, %d of the other", len(search.Calls())-calls, len(audit.Calls())-before)
	}
	p := s.pipeline("inventory")
	s.eventually("what was known elsewhere is forgotten", func() error {
		for _, row := range s.rows() {
			if !strings.HasPrefix(row, prefixOf(p, &p.Spec.Sinks[0])) && !strings.HasPrefix(row, prefixOf(p, &p.Spec.Sinks[1])) {
				return errors.New("unexpected row " + row)
			}
		}
		return nil
	})
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Sinks = p.Spec.Sinks[1:] })
	s.reaches("one sink is left", func(status *v1alpha1.SyncPipelineStatus) bool {
		return len(status.Sinks) == 1 && status.Sinks[0].Name == "audit" && status.Sinks[0].Delivered == 2
	})
}

// TestSelectionChanges checks that objects that are not selected any more are deleted from sinks.
func TestSelectionChanges(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	s.converges(inventory(sinkTo("search", search)), search)
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Instances.Enabled = ptr.To(false) })
	s.knows(search, coupons)
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) {
		p.Spec.Instances.Enabled, p.Spec.CustomResourceDefinitions.Enabled = ptr.To(true), ptr.To(false)
	})
	s.knows(search, named("web"), named("worker"))
}

// TestDeletion checks that the ledger of a deleted pipeline is deleted, also by the next leader. A pipeline with the same name starts with
// an empty one.
func TestDeletion(t *testing.T) {
	for name, tt := range map[string]struct{ running bool }{"while it runs": {true}, "without a leader": {false}} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			search := s.receiver()
			s.converges(inventory(sinkTo("search", search)), search)
			if !tt.running {
				s.stop()
			}
			s.remove("inventory")
			if !tt.running {
				s.start()
			}
			s.eventually("the rows are deleted", func() error { return differs(strings.Join(s.rows(), " "), "") })
			calls := len(search.Calls())
			s.cluster.put("two", "web")
			s.pass(60)
			if again := len(search.Calls()); again != calls {
				t.Errorf("%d calls after the deletion", again-calls)
			}
			s.create(inventory(sinkTo("search", search)))
			s.eventually("the object is sent again", func() error { return differs(level(search, "web"), "two") })
		})
	}
}
