// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// testRetryAfterLostResponse has a receiver accept an event whose response is lost.
func (s *testCluster) testRetryAfterLostResponse(t *testing.T) {
	c := s.newFixture(t, "repeated")
	r := receive(t, events)
	c.define(t, widgets)
	c.readyPipeline(t, prompt, noDefinitions, sinks(r.sink("bus")))
	r.Next(receivertest.Lose())
	c.create(t, "first")
	r.waitForAttempts(t, 2)
	c.create(t, "second")
	r.waitForAttempts(t, 3)
	calls := r.Calls()
	for _, attribute := range []string{"ce-id", "ce-time", "ce-sequence"} {
		first, again, next := calls[0].Header.Get(attribute), calls[1].Header.Get(attribute), calls[2].Header.Get(attribute)
		if first == "" || again != first || next == first || attribute != "ce-id" && next < first {
			t.Errorf("%s = %q, of the retry %q, of the next event %q", attribute, first, again, next)
		}
	}
	if !bytes.Equal(calls[0].Body, calls[1].Body) {
		t.Errorf("body = %s, of the retry %s", calls[0].Body, calls[1].Body)
	}
	if body := string(calls[2].Body); strings.Contains(body, "first") || !strings.Contains(body, "second") {
		t.Errorf("body of the next event = %s", body)
	}
}

// testForbiddenDestinations uses sinks at addresses that users' requests must not reach.
func (s *testCluster) testForbiddenDestinations(t *testing.T) {
	c := s.newFixture(t, "unreachable")
	r := receive(t, whisperer)
	c.define(t, widgets)
	// This address is forbidden. If it were not, it would reach loopback.
	unspecified := strings.ReplaceAll(r.sink("unspecified"), "127.0.0.1", "0.0.0.0")
	// The label is too long for a DNS lookup.
	unnamed := strings.ReplaceAll(r.sink("unnamed"), r.URL, "http://"+strings.Repeat("label0", 11)+".invalid")
	c.readyPipeline(t, prompt, noDefinitions, sinks(unspecified, unnamed, r.sink("index")))
	c.create(t, "first")
	r.waitForChanges(t, "+first")
	c.waitForFailure(t, "unspecified", "--allow-destinations")
	c.waitForFailure(t, "unnamed", "label0.invalid")
	c.waitFor(t, "reports failed sinks", func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonDeliveryFailed)
	})
	c.waitForStatus(t, "unspecified: ")
	c.waitForWarning(t, "DeliveryFailed Sink un") // either sink may have failed first
}

// resync is a pipeline with the shortest resync interval.
type resync struct {
	*fixture
	receiver *receiver
}

// beginResync creates the pipeline and its objects.
func (s *testCluster) beginResync(t *testing.T) *resync {
	t.Helper()
	c := &resync{fixture: s.newFixture(t, "resynced"), receiver: receive(t, whisperer)}
	c.define(t, widgets)
	c.readyPipeline(t, prompt, noDefinitions, "resyncInterval: 1m", sinks(c.receiver.sink("index")))
	c.create(t, "first")
	c.create(t, "second")
	return c
}

// testResync waits until the receiver has got everything twice without a request.
func (c *resync) testResync(t *testing.T) {
	p := c.waitFor(t, "has resynced", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.LastRun == nil || p.Status.LastResyncTime == nil {
			return errors.New("no resync yet")
		}
		return nil
	})
	if run := p.Status.LastRun; run.Actor != "" || !run.Full || run.Scope != v1alpha1.PipelineScopeAll || run.Total != 2 || run.Done != 2 {
		t.Errorf("run = %+v", run)
	}
	counts := map[string]int{}
	for _, line := range summarize(t, c.receiver.rest()) {
		counts[line]++
	}
	if counts["+first"] < 2 || counts["+second"] < 2 || len(counts) != 2 {
		t.Errorf("received changes: %v", counts)
	}
}
