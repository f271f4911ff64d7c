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

// repeated has a receiver take an event, and its answer be lost.
func (s *stage) repeated(t *testing.T) {
	c := s.newScene(t, "repeated")
	r := receive(t, events)
	c.define(t, widgets)
	c.listens(t, prompt, noDefinitions, sinks(r.sink("bus")))
	r.Next(receivertest.Lose())
	c.create(t, "first")
	r.attempted(t, 2)
	c.create(t, "second")
	r.attempted(t, 3)
	calls := r.Calls()
	for _, attribute := range []string{"ce-id", "ce-time", "ce-sequence"} {
		first, again, next := calls[0].Header.Get(attribute), calls[1].Header.Get(attribute), calls[2].Header.Get(attribute)
		if first == "" || again != first || next == first || attribute != "ce-id" && next < first {
			t.Errorf("%s is %q, then again %q, and of the next one %q", attribute, first, again, next)
		}
	}
	if !bytes.Equal(calls[0].Body, calls[1].Body) {
		t.Errorf("the event is %s, and then %s", calls[0].Body, calls[1].Body)
	}
	if said := string(calls[2].Body); strings.Contains(said, "first") || !strings.Contains(said, "second") {
		t.Errorf("the next event tells of %s", said)
	}
}

// unreachable has sinks at addresses that users' requests must not lead to.
func (s *stage) unreachable(t *testing.T) {
	c := s.newScene(t, "unreachable")
	r := receive(t, whisperer)
	c.define(t, widgets)
	// It is refused, as all of its kind, and leads to loopback if it is not.
	unspecified := strings.ReplaceAll(r.sink("unspecified"), "127.0.0.1", "0.0.0.0")
	// A label is too long for a name to be looked up.
	unnamed := strings.ReplaceAll(r.sink("unnamed"), r.URL, "http://"+strings.Repeat("nobody", 11)+".invalid")
	c.listens(t, prompt, noDefinitions, sinks(unspecified, unnamed, r.sink("index")))
	c.create(t, "first")
	r.hears(t, "+first")
	c.fails(t, "unspecified", "--allow-destinations")
	c.fails(t, "unnamed", "nobody.invalid")
	c.becomes(t, "says that sinks fail", func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonDeliveryFailed)
	})
	c.says(t, "unspecified: ")
	c.warned(t, "DeliveryFailed Sink un") // whichever failed first; the conditions name both
}

// resync is a pipeline that tells of everything once more as often as it may.
type resync struct {
	*scene
	receiver *receiver
}

// beginResync makes it and what it tells of.
func (s *stage) beginResync(t *testing.T) *resync {
	t.Helper()
	c := &resync{scene: s.newScene(t, "resynced"), receiver: receive(t, whisperer)}
	c.define(t, widgets)
	c.listens(t, prompt, noDefinitions, "resyncInterval: 1m", sinks(c.receiver.sink("index")))
	c.create(t, "first")
	c.create(t, "second")
	return c
}

// comes waits until the receiver has been told twice, while nobody has asked for it.
func (c *resync) comes(t *testing.T) {
	p := c.becomes(t, "has told of everything again", func(p *v1alpha1.SyncPipeline) error {
		if p.Status.LastRun == nil || p.Status.LastResyncTime == nil {
			return errors.New("it has not")
		}
		return nil
	})
	if run := p.Status.LastRun; run.Actor != "" || !run.Full || run.Scope != v1alpha1.PipelineScopeAll || run.Total != 2 || run.Done != 2 {
		t.Errorf("the run says %+v", run)
	}
	told := map[string]int{}
	for _, line := range story(t, c.receiver.rest()) {
		told[line]++
	}
	if told["+first"] < 2 || told["+second"] < 2 || len(told) != 2 {
		t.Errorf("it was told %v", told)
	}
}
