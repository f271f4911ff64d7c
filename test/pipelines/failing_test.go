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
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// retryAfter is the Retry-After of a busy receiver.
const retryAfter = 2 * time.Second

// testRecovery has one of two receivers fail in several ways before it accepts requests.
func (s *testCluster) testRecovery(t *testing.T) {
	c := s.newFixture(t, "recovered")
	failing, well := receive(t, whisperer), receive(t, whisperer)
	c.define(t, widgets)
	c.readyPipeline(t, prompt, noDefinitions, sinks(failing.sink("failing", "timeout: 10s"), well.sink("well")))
	failing.Next(
		receivertest.Status(http.StatusTooManyRequests, "Retry-After", fmt.Sprint(retryAfter.Seconds())),
		receivertest.Status(http.StatusInternalServerError), receivertest.Hang(), receivertest.Close(),
	)
	failing.Always(receivertest.Status(http.StatusServiceUnavailable))
	c.create(t, "first", "tier=front")
	well.waitForChanges(t, "+first front")
	failing.waitForAttempts(t, 1)
	c.relabel(t, "first", "tier=back")
	well.waitForChanges(t, "+first back")
	c.remove(t, "first")
	well.waitForChanges(t, "-first")
	c.create(t, "second")
	well.waitForChanges(t, "+second")

	failing.waitForAttempts(t, 6)
	c.waitForSink(t, "failing", "fails", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Failures < 5 || sink.NextAttemptTime == nil || sink.LastError == nil || sink.Pending != 2 {
			return fmt.Errorf("%d failures, %d pending: %+v", sink.Failures, sink.Pending, sink.LastError)
		}
		return nil
	})
	c.waitForSink(t, "well", "does not fail", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Failures != 0 || sink.LastError != nil || sink.Pending != 0 || sink.Delivered != 1 {
			return errors.New("sink has failures")
		}
		return nil
	})
	if calls := failing.accepted(); len(calls) > 0 {
		t.Fatalf("failing receiver accepted %q", summarize(t, calls))
	}
	failing.Always()
	c.expectCatchUp(t, failing)
}

// expectCatchUp expects the receiver to get the outstanding changes once and in order, and Retry-After to be respected.
func (c *fixture) expectCatchUp(t *testing.T, r *receiver) {
	t.Helper()
	lines := map[bool][]string{}
	mirrortest.Eventually(t, "the receiver catches up", func(context.Context) error {
		for _, line := range summarize(t, r.rest()) {
			created := line == "+second"
			lines[created] = append(lines[created], line)
		}
		if len(lines[true]) < 1 || len(lines[false]) < 2 {
			return fmt.Errorf("received %v", lines)
		}
		return nil
	})
	if got := fmt.Sprint(lines[false], lines[true]); got != "[+first front -first] [+second]" {
		t.Errorf("received %s", got)
	}
	calls := r.Calls()
	if waited := calls[1].At.Sub(calls[0].At); waited < retryAfter {
		t.Errorf("retried after %s", waited)
	}
	for i, call := range calls[:7] {
		if !bytes.Equal(call.Body, calls[0].Body) {
			t.Errorf("body of retry %d differs: %s", i, call.Body)
		}
	}
	c.waitForSink(t, "failing", "has recovered", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Failures != 0 || sink.LastError != nil || sink.NextAttemptTime != nil || sink.Pending != 0 || sink.Delivered != 1 {
			return errors.New("sink has not recovered")
		}
		return nil
	})
	c.Ready(t, "", "pipe/"+c.name)
}

// waitForAttempts waits for a number of calls.
func (r *receiver) waitForAttempts(t *testing.T, count int) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%d attempts", count), func(context.Context) error {
		if calls := len(r.Calls()); calls < count {
			return fmt.Errorf("%d calls", calls)
		}
		return nil
	})
}

// testRejection has a receiver reject one call, in several ways.
func (s *testCluster) testRejection(t *testing.T) {
	c := s.newFixture(t, "rejected")
	r, elsewhere := receive(t, whisperer), receive(t, whisperer)
	c.define(t, widgets)
	c.readyPipeline(t, prompt, noDefinitions, sinks(r.sink("strict")))
	for i, rejection := range []receivertest.Answer{
		receivertest.Status(http.StatusBadRequest).With(`{"error":"invalid payload"}`),
		receivertest.Status(http.StatusNotFound),
		receivertest.Status(http.StatusTemporaryRedirect, "Location", elsewhere.URL+"/elsewhere"),
	} {
		r.Next(rejection)
		bad, good := fmt.Sprint("bad", i), fmt.Sprint("good", i)
		c.create(t, bad)
		c.waitForSink(t, "strict", "reports the rejection", func(sink *v1alpha1.PipelineSinkStatus) error {
			if sink.Rejected != 1 || sink.LastError == nil {
				return fmt.Errorf("%d rejected: %+v", sink.Rejected, sink.LastError)
			}
			return nil
		})
		c.create(t, good)
		r.waitForChanges(t, "+"+good)
		if attempts := len(summarize(t, r.Calls())); attempts != 2+i*3 {
			t.Errorf("calls after rejection %d: %q", i, summarize(t, r.Calls()))
		}
		c.expectRejection(t, rejection)
		c.mustSync(t, all)
		r.waitForChanges(t, "+"+bad)
		c.Ready(t, "", "pipe/"+c.name)
	}
	if calls := elsewhere.Calls(); len(calls) > 0 {
		t.Errorf("redirect was followed: %s", calls[0].Body)
	}
}

// expectRejection expects the status to report the rejected objects and the response.
func (c *fixture) expectRejection(t *testing.T, rejection receivertest.Answer) {
	t.Helper()
	p := c.waitFor(t, "reports rejected and delivered objects", func(p *v1alpha1.SyncPipeline) error {
		if sink := p.Status.Sinks[0]; sink.Delivered == 0 || sink.Pending > 0 {
			return fmt.Errorf("%d delivered, %d pending", sink.Delivered, sink.Pending)
		}
		return conditionIs(p, v1alpha1.ConditionSinksDelivering, "False", v1alpha1.ReasonDeliveryRejected)
	})
	sink := p.Status.Sinks[0]
	contains(t, sink.LastError.Message, fmt.Sprint(rejection.Code))
	c.waitForStatus(t, "strict refuses 1 of the objects")
	if sink.NextAttemptTime != nil || sink.Failures != 0 {
		t.Errorf("sink = %+v", sink)
	}
	switch rejection.Code {
	case http.StatusBadRequest:
		contains(t, sink.LastError.Message, "invalid payload")
	case http.StatusTemporaryRedirect:
		contains(t, sink.LastError.Message, "/elsewhere")
	}
}

// testMaxAttempts has a receiver fail more often than the maximum number of attempts.
func (s *testCluster) testMaxAttempts(t *testing.T) {
	c := s.newFixture(t, "rested")
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.readyPipeline(t, prompt, noDefinitions, sinks(strings.ReplaceAll(r.sink("weary"), "retry: {", "retry: {maxAttempts: 3, ")))
	r.Always(receivertest.Status(http.StatusServiceUnavailable))
	c.create(t, "first")
	c.waitFor(t, "gives up", func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionSinksDelivering, "False", v1alpha1.ReasonDeliveryGivenUp)
	})
	c.waitForStatus(t, "weary: ")
	c.create(t, "second")
	c.waitForPending(t, 2)
	if calls := r.Calls(); len(calls) != 3 {
		t.Errorf("%d attempts, want 3", len(calls))
	}
	r.Always()
	c.mustSync(t, all)
	if got := fmt.Sprint(summarize(t, r.rest())); got != "[+first +second]" {
		t.Errorf("received %s", got)
	}
	c.Ready(t, "", "pipe/"+c.name)
}

func conditionIs(p *v1alpha1.SyncPipeline, kind, status, reason string) error {
	for _, condition := range p.Status.Conditions {
		if condition.Type == kind && string(condition.Status) == status && condition.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("no condition %s=%s with reason %s", kind, status, reason)
}
