// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// TestStoreIsFullAfterADelivery checks that the status does not show an error of the store any more once writes succeed, also if nothing is
// left to send.
func TestStoreIsFullAfterADelivery(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	s.converges(inventory(sinkTo("search", search)), search)
	gate := make(chan struct{})
	search.Next(receivertest.Gate(gate))
	calls := len(search.Calls())
	s.cluster.put("two", "web")
	s.eventually("the batch is sent", func() error { return atLeast(len(search.Calls()), calls+1) })
	s.full.Store(true)
	close(gate)
	s.reaches("the failures are counted", func(status *v1alpha1.SyncPipelineStatus) bool { return status.Sinks[0].Failures > 2 })
	s.full.Store(false)
	s.reaches("the failure is over", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.LastError == "" && status.Sinks[0].LastError == nil && status.Sinks[0].Failures == 0
	})
}

// TestRequestsLeaveNoAttempts checks that a request does not add an attempt to later failures of a sink.
func TestRequestsLeaveNoAttempts(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	p := inventory(sinkTo("search", search))
	p.Spec.Sinks[0].Retry.MaxAttempts = ptr.To[int32](1)
	s.converges(p, search)
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
	s.ended("request-1")
	calls := len(search.Calls())
	search.Always(receivertest.Status(503))
	s.cluster.put("two", "web")
	s.says(v1alpha1.ConditionStalled, v1alpha1.ReasonDeliveryGivenUp)
	s.pass(60)
	if more := len(search.Calls()) - calls; more != 1 {
		t.Errorf("%d calls", more)
	}
}
