// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// TestShorterWaitsCountAtOnce checks that a shorter debounce or maxWait applies to pending changes.
func TestShorterWaitsCountAtOnce(t *testing.T) {
	for name, tt := range map[string]struct{ before, edit func(*v1alpha1.SyncPipeline) }{
		"debounce": {
			func(p *v1alpha1.SyncPipeline) { p.Spec.Debounce = &metav1.Duration{Duration: 10 * time.Minute} },
			func(p *v1alpha1.SyncPipeline) { p.Spec.Debounce = &metav1.Duration{} },
		},
		"maxWait": {
			func(p *v1alpha1.SyncPipeline) {
				p.Spec.Debounce, p.Spec.Batch.MaxWait = &metav1.Duration{}, &metav1.Duration{Duration: 5 * time.Minute}
			},
			func(p *v1alpha1.SyncPipeline) { p.Spec.Batch.MaxWait = &metav1.Duration{} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			search := s.receiver()
			p := inventory(sinkTo("search", search))
			tt.before(p)
			s.create(p)
			s.start()
			s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, false)
			s.knows(search, coupons, named("web"), named("worker"))
			s.ended("request-1")
			s.cluster.put("two", "web")
			// The clock runs slowly: what happens does not take minutes of it on a busy machine.
			s.clock.EventuallyBy(50*time.Millisecond, "the change is pending", func() error {
				return differs(fmt.Sprint(s.pipeline("inventory").Status.Pending), "1")
			})
			edited := s.clock.Now()
			s.edit("inventory", tt.edit)
			s.clock.EventuallyBy(50*time.Millisecond, "the new label is sent", func() error { return differs(level(search, "web"), "two") })
			if waited := s.clock.Since(edited); waited > 2*time.Minute {
				t.Errorf("change waited for %s", waited)
			}
		})
	}
}

// TestBatchesBecomeSmaller checks that an edit of the spec splits a batch that is too large, and retries a sink that was given up.
func TestBatchesBecomeSmaller(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	search.Always(receivertest.Status(503))
	p := inventory(sinkTo("search", search))
	p.Spec.CustomResourceDefinitions.Enabled = ptr.To(false)
	p.Spec.Sinks[0].Retry.MaxAttempts = ptr.To[int32](1)
	s.create(p)
	s.start()
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonDeliveryGivenUp)
	search.Always()
	before := len(search.Calls())
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Batch.MaxItems = ptr.To[int32](1) })
	s.knows(search, named("web"), named("worker"))
	if calls := len(search.Calls()) - before; calls != 2 {
		t.Errorf("%d calls, want two with one object each", calls)
	}
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
}

func TestEditedSinkIsSentWhatItRefused(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	search.Always(receivertest.Status(401))
	s.create(inventory(sinkTo("search", search)))
	s.start()
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonDeliveryRejected)
	search.Always()
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Sinks[0].HTTP.Timeout = &metav1.Duration{Duration: time.Minute} })
	s.knows(search, coupons, named("web"), named("worker"))
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
}

// TestSinkIsAddedAgainWhileTheStoreIsFull checks that a sink that is added again while its ledger cannot be deleted gets the old ledger or
// a new one, and that no rows are deleted from it.
func TestSinkIsAddedAgainWhileTheStoreIsFull(t *testing.T) {
	s := newFixture(t)
	search, elsewhere := s.receiver(), s.receiver()
	s.converges(inventory(sinkTo("search", search)), search)
	s.full.Store(true)
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Sinks[0].HTTP.URL = elsewhere.URL })
	s.reaches("its ledger cannot be deleted", func(status *v1alpha1.SyncPipelineStatus) bool {
		return strings.Contains(status.LastError, "delete the ledger of sink search")
	})
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Sinks[0].HTTP.URL = search.URL })
	s.pass(5)
	s.full.Store(false)
	s.reaches("the sink is added again", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.ObservedGeneration == 3 && status.Sinks[0].Delivered == 3 && status.LastError == ""
	})
	s.stop()
	s.cluster.remove("worker")
	s.start()
	s.knows(search, coupons, named("web"))
}
