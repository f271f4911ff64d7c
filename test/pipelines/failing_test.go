// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// retryAfter is what a receiver asks for that is too busy.
const retryAfter = 2 * time.Second

// recovered has one of two receivers fail in every way before it takes what it is sent.
func (s *stage) recovered(t *testing.T) {
	c := s.newScene(t, "recovered")
	failing, well := receive(t, whisperer), receive(t, whisperer)
	c.define(t, widgets)
	c.listens(t, prompt, noDefinitions, sinks(failing.sink("failing", "timeout: 1s"), well.sink("well")))
	failing.Next(
		receivertest.Status(http.StatusTooManyRequests, "Retry-After", fmt.Sprint(retryAfter.Seconds())),
		receivertest.Status(http.StatusInternalServerError), receivertest.Hang(), receivertest.Close(),
	)
	failing.Always(receivertest.Status(http.StatusServiceUnavailable))
	c.create(t, "first", "tier=front")
	well.hears(t, "+first front")
	failing.attempted(t, 1)
	c.relabel(t, "first", "tier=back")
	well.hears(t, "+first back")
	c.remove(t, "first")
	well.hears(t, "-first")
	c.create(t, "second")
	well.hears(t, "+second")

	failing.attempted(t, 6)
	c.sinkBecomes(t, "failing", "fails", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Failures < 5 || sink.NextAttemptTime == nil || sink.LastError == nil || sink.Pending != 2 {
			return fmt.Errorf("%d failures, %d wait: %+v", sink.Failures, sink.Pending, sink.LastError)
		}
		return nil
	})
	c.sinkBecomes(t, "well", "does not", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Failures != 0 || sink.LastError != nil || sink.Pending != 0 || sink.Delivered != 1 {
			return errors.New("it does")
		}
		return nil
	})
	if calls := failing.accepted(); len(calls) > 0 {
		t.Fatalf("what fails has taken %q", story(t, calls))
	}
	failing.Always()
	c.catchesUp(t, failing)
}

// catchesUp expects all that the receiver refused to come once, in order, and what it was asked meanwhile to be respected.
func (c *scene) catchesUp(t *testing.T, r *receiver) {
	t.Helper()
	told := map[bool][]string{}
	mirrortest.Eventually(t, "the receiver catches up", func(context.Context) error {
		for _, line := range story(t, r.rest()) {
			about := line == "+second"
			told[about] = append(told[about], line)
		}
		if len(told[true]) < 1 || len(told[false]) < 2 {
			return fmt.Errorf("it was told %v", told)
		}
		return nil
	})
	if got := fmt.Sprint(told[false], told[true]); got != "[+first front -first] [+second]" {
		t.Errorf("it was told %s", got)
	}
	calls := r.Calls()
	if waited := calls[1].At.Sub(calls[0].At); waited < retryAfter {
		t.Errorf("it was asked again after %s", waited)
	}
	for i, call := range calls[:7] {
		if !bytes.Equal(call.Body, calls[0].Body) {
			t.Errorf("call %d tells another thing than the first: %s", i, call.Body)
		}
	}
	c.sinkBecomes(t, "failing", "is well", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Failures != 0 || sink.LastError != nil || sink.NextAttemptTime != nil || sink.Pending != 0 || sink.Delivered != 1 {
			return errors.New("it is not")
		}
		return nil
	})
	c.Ready(t, "pipe/"+c.name)
}

// attempted waits until there have been so many calls.
func (r *receiver) attempted(t *testing.T, count int) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%d attempts", count), func(context.Context) error {
		if calls := len(r.Calls()); calls < count {
			return fmt.Errorf("there were %d", calls)
		}
		return nil
	})
}

// rejected has a receiver refuse one call, in several ways.
func (s *stage) rejected(t *testing.T) {
	c := s.newScene(t, "rejected")
	r, elsewhere := receive(t, whisperer), receive(t, whisperer)
	c.define(t, widgets)
	c.listens(t, prompt, noDefinitions, sinks(r.sink("strict")))
	for i, refusal := range []receivertest.Answer{
		receivertest.Status(http.StatusBadRequest).With(`{"error":"not like this"}`),
		receivertest.Status(http.StatusNotFound),
		receivertest.Status(http.StatusTemporaryRedirect, "Location", elsewhere.URL+"/elsewhere"),
	} {
		r.Next(refusal)
		bad, good := fmt.Sprint("bad", i), fmt.Sprint("good", i)
		c.create(t, bad)
		c.sinkBecomes(t, "strict", "shows what was refused", func(sink *v1alpha1.PipelineSinkStatus) error {
			if sink.Rejected != 1 || sink.LastError == nil {
				return fmt.Errorf("%d are refused: %+v", sink.Rejected, sink.LastError)
			}
			return nil
		})
		c.create(t, good)
		r.hears(t, "+"+good)
		if attempts := len(story(t, r.Calls())); attempts != 2+i*3 {
			t.Errorf("after refusal %d there have been %q", i, story(t, r.Calls()))
		}
		c.explained(t, refusal)
		c.synced(t, all)
		r.hears(t, "+"+bad)
		c.Ready(t, "pipe/"+c.name)
	}
	if calls := elsewhere.Calls(); len(calls) > 0 {
		t.Errorf("a redirect was followed: %s", calls[0].Body)
	}
}

// explained expects the pipeline to say what was refused, and why.
func (c *scene) explained(t *testing.T, refusal receivertest.Answer) {
	t.Helper()
	p := c.becomes(t, "says what was refused and what was not", func(p *v1alpha1.SyncPipeline) error {
		if sink := p.Status.Sinks[0]; sink.Delivered == 0 || sink.Pending > 0 {
			return fmt.Errorf("%d are delivered, %d wait", sink.Delivered, sink.Pending)
		}
		return conditionIs(p, v1alpha1.ConditionSinksDelivering, "False", v1alpha1.ReasonDeliveryRejected)
	})
	sink := p.Status.Sinks[0]
	contains(t, sink.LastError.Message, fmt.Sprint(refusal.Code))
	c.says(t, "strict refuses 1 of the objects")
	if sink.NextAttemptTime != nil || sink.Failures != 0 {
		t.Errorf("of the sink it says %+v", sink)
	}
	switch refusal.Code {
	case http.StatusBadRequest:
		contains(t, sink.LastError.Message, "not like this")
	case http.StatusTemporaryRedirect:
		contains(t, sink.LastError.Message, "/elsewhere")
	}
}

// rested has a receiver fail more often than its sink is to try.
func (s *stage) rested(t *testing.T) {
	c := s.newScene(t, "rested")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.listens(t, prompt, noDefinitions, sinks(strings.ReplaceAll(r.sink("weary"), "retry: {", "retry: {maxAttempts: 3, ")))
	r.Always(receivertest.Status(http.StatusServiceUnavailable))
	c.create(t, "first")
	c.becomes(t, "gives up", func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionSinksDelivering, "False", v1alpha1.ReasonDeliveryGivenUp)
	})
	c.says(t, "weary: ")
	c.create(t, "second")
	c.waits(t, 2)
	if calls := r.Calls(); len(calls) != 3 {
		t.Errorf("there were %d attempts", len(calls))
	}
	r.Always()
	c.synced(t, all)
	if got := fmt.Sprint(story(t, r.rest())); got != "[+first +second]" {
		t.Errorf("it is told %s", got)
	}
	c.Ready(t, "pipe/"+c.name)
}

func conditionIs(p *v1alpha1.SyncPipeline, kind, status, reason string) error {
	for _, condition := range p.Status.Conditions {
		if condition.Type == kind && string(condition.Status) == status && condition.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("it is not %s=%s for %s", kind, status, reason)
}
