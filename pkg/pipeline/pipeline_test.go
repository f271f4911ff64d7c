// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// TestSinkReceivesChanges checks that a sink receives the existing objects, and then their changes.
func TestSinkReceivesChanges(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	s.create(inventory(sinkTo("search", search)))
	s.start()
	s.knows(search, coupons, named("web"), named("worker"))
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
	status := s.reaches("all is delivered", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.Objects == 3 && status.Pending == 0 && status.Sinks[0].Delivered == 3
	})
	if status.WatchedTypes != 2 || status.ObservedGeneration != 1 || status.LastError != "" || status.Sinks[0].LastDeliveryTime == nil {
		t.Errorf("%+v", status)
	}

	s.cluster.put("two", "web")
	s.cluster.remove("worker")
	s.cluster.define("orders", "Order")
	s.knows(search, coupons, "orders.example.com", named("web"))
	s.eventually("the new label is sent", func() error { return differs(level(search, "web"), "two") })
}

// TestOutage checks that changes for a sink that is down stay pending, and that it does not delay another sink.
func TestOutage(t *testing.T) {
	s := newFixture(t)
	search, audit := s.receiver(), s.receiver()
	search.Always(receivertest.Status(503, "Retry-After", "2"))
	s.create(inventory(sinkTo("search", search), sinkTo("audit", audit)))
	s.start()
	s.knows(audit, coupons, named("web"), named("worker"))
	why := s.says(v1alpha1.ConditionSinksDelivering, v1alpha1.ReasonDeliveryFailed)
	if !strings.HasPrefix(why.Message, "Sink search fails and is tried again by itself: 503") {
		t.Errorf("message = %q", why.Message)
	}
	failing := s.reaches("the failure is shown", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.Sinks[0].Failures >= 3 && status.Sinks[0].NextAttemptTime != nil && status.Sinks[0].LastError != nil &&
			status.Sinks[1].Pending == 0
	})
	if failing.Sinks[1].Failures != 0 || failing.Sinks[0].Pending != 3 || failing.Pending != 3 {
		t.Errorf("%+v", failing.Sinks)
	}
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonDeliveryFailed)

	s.cluster.remove("worker")
	s.knows(audit, coupons, named("web"))
	search.Always()
	s.knows(search, coupons, named("web"))
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
	well := s.reaches("the failure is over", func(status *v1alpha1.SyncPipelineStatus) bool { return status.Sinks[0].Failures == 0 })
	if well.Sinks[0].LastError != nil || well.Sinks[0].NextAttemptTime != nil {
		t.Errorf("%+v", well.Sinks[0])
	}
	for _, want := range []string{"Warning DeliveryFailed: Sink search fails", "Normal Recovered: No longer DeliveryFailed"} {
		s.eventually("an Event says "+want, func() error { return contains(s.events.Lines(), want) })
	}
	ids := map[string]bool{}
	for _, call := range search.Calls()[:4] {
		ids[call.Header.Get("Ce-Id")] = true
	}
	if len(ids) > 2 {
		t.Errorf("ids of retried batches differ: %v", ids)
	}
}

// TestSinkHangs checks that a sink that does not respond blocks neither other sinks nor the end of the process.
func TestSinkHangs(t *testing.T) {
	s := newFixture(t)
	search, audit := s.receiver(), s.receiver()
	search.Always(receivertest.Hang())
	s.create(inventory(sinkTo("search", search), sinkTo("audit", audit)))
	s.start()
	s.knows(audit, coupons, named("web"), named("worker"))
	s.eventually("the sink is asked", func() error { return atLeast(len(search.Calls()), 1) })
	s.edit("inventory", func(p *v1alpha1.SyncPipeline) { p.Spec.Sinks[1].Retry.MaxAttempts = ptr.To[int32](3) })
	s.cluster.put("two", "web")
	s.eventually("a change is sent", func() error { return differs(level(audit, "web"), "two") })
	s.stop()
}

func TestRefusedObjectsAreShown(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	search.Always(receivertest.Status(400).With("no such index"))
	p := inventory(sinkTo("search", search))
	p.Spec.CustomResourceDefinitions.Enabled = ptr.To(false)
	s.create(p)
	s.start()
	why := s.says(v1alpha1.ConditionReady, v1alpha1.ReasonDeliveryRejected)
	want := "refuses 2 of the objects; put right what it says and ask for a sync: 400 Bad Request: no such index"
	if !strings.Contains(why.Message, want) {
		t.Errorf("message = %q", why.Message)
	}
	s.says(v1alpha1.ConditionStalled, v1alpha1.ReasonDeliveryRejected)
	calls := len(search.Calls())
	s.pass(120)
	if again := len(search.Calls()); again != calls {
		t.Errorf("%d calls after the rejection", again-calls)
	}

	search.Always()
	s.cluster.put("two", "web")
	s.knows(search, named("web"))
	status := s.reaches("one is left", func(status *v1alpha1.SyncPipelineStatus) bool { return status.Sinks[0].Rejected == 1 })
	if status.Sinks[0].LastError == nil {
		t.Error("response about the other object is not shown any more")
	}
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, false)
	s.knows(search, named("web"), named("worker"))
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
}

// TestMaxAttempts checks that a sink is not retried after maxAttempts until a sync is requested.
func TestMaxAttempts(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	search.Always(receivertest.Close())
	p := inventory(sinkTo("search", search))
	p.Spec.Sinks[0].Retry.MaxAttempts = ptr.To[int32](2)
	s.create(p)
	s.start()
	s.says(v1alpha1.ConditionStalled, v1alpha1.ReasonDeliveryGivenUp)
	s.pass(600)
	if calls := len(search.Calls()); calls != 2 {
		t.Errorf("%d calls", calls)
	}
	status := s.reaches("the sink has failed twice", func(status *v1alpha1.SyncPipelineStatus) bool { return status.Sinks[0].Failures == 2 })
	if status.Sinks[0].NextAttemptTime != nil || status.Sinks[0].Pending != 3 {
		t.Errorf("%+v", status.Sinks[0])
	}
	search.Always()
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, false)
	s.knows(search, coupons, named("web"), named("worker"))
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
}

func TestTypeCannotBeListed(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	s.cluster.refuse(errors.New("not today"))
	s.create(inventory(sinkTo("search", search)))
	s.start()
	s.knows(search, coupons)
	why := s.says(v1alpha1.ConditionReady, v1alpha1.ReasonWatchFailed)
	if !strings.Contains(why.Message, "configmaps/v1 cannot be") || !strings.Contains(why.Message, "not today") {
		t.Errorf("message = %q", why.Message)
	}
	s.reaches("the failure is the last error", func(status *v1alpha1.SyncPipelineStatus) bool {
		return strings.Contains(status.LastError, "not today")
	})
	s.cluster.refuse(nil)
	s.knows(search, coupons, named("web"), named("worker"))
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
	s.reaches("the last error is cleared", func(status *v1alpha1.SyncPipelineStatus) bool { return status.LastError == "" })
}

// TestStatusIsWrittenOnceASecond checks that a status is written at most once a second.
func TestStatusIsWrittenOnceASecond(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprintf("map-%d", i))
	}
	s.cluster.put("one", names...)
	p := inventory(sinkTo("search", search))
	p.Spec.Batch.MaxItems = ptr.To[int32](10)
	p.Spec.Debounce = &metav1.Duration{}
	s.create(p)
	s.start()
	s.reaches("all is delivered", func(status *v1alpha1.SyncPipelineStatus) bool {
		return len(status.Sinks) > 0 && status.Sinks[0].Delivered == 503
	})
	times := s.written()
	for i, at := range times[1:] {
		if at.Sub(times[i]) < time.Second {
			t.Fatalf("status was written at %v and %v", times[i], at)
		}
	}
}

// TestConflictsAreRepeated checks that status writes do not overwrite concurrent changes.
func TestConflictsAreRepeated(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	s.create(inventory(sinkTo("search", search)))
	s.rejectNext(3)
	s.start()
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
	s.ask("inventory", "request-1", v1alpha1.PipelineScopeAll, true)
	s.rejectNext(2)
	s.reaches("the run has ended", func(status *v1alpha1.SyncPipelineStatus) bool {
		return len(status.PendingRequests) == 0 && status.LastRun != nil && status.LastRun.ID == "request-1"
	})
}

func contains(lines []string, want string) error {
	if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
		return nil
	}
	return fmt.Errorf("%q is not among %q", want, lines)
}

func atLeast(got, want int) error {
	if got >= want {
		return nil
	}
	return fmt.Errorf("got %d, want at least %d", got, want)
}
