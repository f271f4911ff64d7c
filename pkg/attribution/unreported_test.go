// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestUnreported(t *testing.T) {
	written := func(managers map[string]time.Duration) *pendingEvent {
		event := managed("6", managers)
		return &pendingEvent{event: &event, arrived: time.Now()}
	}
	by := func(manager string) *pendingEvent { return written(map[string]time.Duration{manager: 0}) }
	removed := func(manager string) *pendingEvent {
		w := by(manager)
		w.event.Operation = deleted
		return w
	}
	elsewhere := by("kubectl")
	elsewhere.event.Object.SetNamespace("elsewhere")
	ending := by("kubectl")
	ending.event.Object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	for name, tt := range map[string]struct {
		// missed and then reported are the changes before.
		missed, reported, change *pendingEvent
		want                     bool
	}{
		"first change":                        {change: by("kubectl"), want: true},
		"first deletion":                      {change: removed("kubectl"), want: true},
		"by a field manager before":           {missed: by("kubectl"), change: by("kubectl")},
		"reported since":                      {missed: by("kubectl"), reported: by("kubectl"), change: by("kubectl"), want: true},
		"by another field manager":            {missed: by("argocd"), change: by("kubectl"), want: true},
		"in another namespace":                {missed: by("kubectl"), change: elsewhere, want: true},
		"by the newest of the field managers": {missed: by("kubectl"), change: written(map[string]time.Duration{"kubectl": 0, "argocd": time.Minute})},
		"of two in the same second":           {missed: written(map[string]time.Duration{"kubectl": 0, "argocd": 0}), change: by("kubectl"), want: true},
		"with its status in the same second":  {missed: written(map[string]time.Duration{"kubectl": 0, "status": 0}), change: by("kubectl"), want: true},
		"of an entry before":                  {missed: written(map[string]time.Duration{"kubectl": time.Minute}), change: by("kubectl"), want: true},
		"of a deletion that is requested":     {missed: ending, change: by("kubectl"), want: true},
		"deletion, whoever wrote the object":  {missed: removed("kubectl"), change: removed("argocd")},
		"deletion after a write":              {missed: by("kubectl"), change: removed("kubectl"), want: true},
		"deletion that is requested":          {change: ending},
		"status":                              {change: written(map[string]time.Duration{"kubectl": time.Minute, "status": 0})},
		"status in the same second":           {change: written(map[string]time.Duration{"kubectl": 0, "status": 0}), want: true},
		"written after its status":            {change: written(map[string]time.Duration{"kubectl": 0, "status": time.Minute}), want: true},
		"without any field managers":          {change: written(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			u, now := unreported{lately[writer]{}}, time.Now()
			for _, before := range []*pendingEvent{tt.missed, tt.reported} {
				if before != nil {
					u.note(writingOf(before.event, before.arrived), before == tt.reported, now)
				}
			}
			if got := u.expects(writingOf(tt.change.event, tt.change.arrived), now); got != tt.want {
				t.Errorf("a report is expected: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestUnreportedIsBounded checks that writers whose changes are not reported take bounded memory.
func TestUnreportedIsBounded(t *testing.T) {
	u, now := unreported{lately[writer]{}}, time.Now()
	event := managed("6", map[string]time.Duration{"kubectl": 0})
	var w writing
	for i := range unreportedLimit + 1 {
		event.Object.SetNamespace(strconv.Itoa(i))
		w = writingOf(&event, now)
		u.note(w, false, now)
		if len(u.lately) > unreportedLimit || u.expects(w, now) {
			t.Fatalf("%d writers are stored after %d; a report of the last one is expected: %t", len(u.lately), i+1, u.expects(w, now))
		}
	}
	if !u.expects(w, now.Add(unreportedLifetime)) {
		t.Error("no report is expected after the lifetime")
	}
	u.expire(unreportedLifetime, now.Add(unreportedLifetime))
	if len(u.lately) != 0 {
		t.Errorf("%d expired writers are still stored", len(u.lately))
	}
}

// TestReportsOfOwnKinds checks that changes of this server's own kinds do not wait for the audit of the API servers.
func TestReportsOfOwnKinds(t *testing.T) {
	x := newExpectations(maxWait)
	x.sources.audit.received(time.Now(), time.Now())
	event := managed("6", map[string]time.Duration{"kubectl": 0})
	expected := func() bool {
		now := time.Now()
		return x.expectsReport(objectOf(event.Resource.GroupResource(), event.Object), writingOf(&event, now), now)
	}
	if !expected() {
		t.Error("no report about a ConfigMap is expected")
	}
	event.Resource = schema.GroupVersionResource{Group: v1alpha1.GroupName, Resource: "environments"}
	if expected() {
		t.Error("a report about a kind of this server is expected")
	}
}

// TestQuietCluster has a change that the audit leaves out, and long after that one that it reports, as at night. The audit has been silent in
// spite of a change, but the second change is not delivered without its author.
func TestQuietCluster(t *testing.T) {
	for name, operation := range map[string]v1alpha1.Operation{"write": update, "deletion": deleted} {
		for left, manager := range map[time.Duration]string{
			10 * time.Minute: "controller", silenceTimeout - 1: "kubectl", silenceTimeout: "kubectl", silenceTimeout + maxWait: "kubectl",
		} {
			t.Run(fmt.Sprintf("%s %s after one by %s", name, left, manager), func(t *testing.T) {
				inBubble(t, Config{}, func(t *testing.T, s *fixture) {
					const lag = 200 * time.Millisecond
					s.wake(lag, Audit)
					omitted := managed("1", map[string]time.Duration{manager: 0})
					omitted.Operation = operation
					s.submit(omitted)
					pass(left)
					s.resetDeliveries()
					event := configMap("other", "u2", "6").event(operation, "")
					fact := factOf("ann", Audit, operation, event)
					s.submit(event)
					pass(2 * lag)
					s.Add([]Fact{fact}, false)
					pass(maxWait)
					if got := s.deliveries(); len(got) != 1 || got[0].author.Username != "ann" {
						t.Errorf("delivered %+v, want ann's change", got)
					}
				})
			})
		}
	}
}

// TestFirstChangeAfterARestart has a server that starts while nobody changes anything. The lags that its predecessor has stored show that
// there is an audit, so that the first change waits for its report, and so does a comparison.
func TestFirstChangeAfterARestart(t *testing.T) {
	const lag = 200 * time.Millisecond
	for name, test := range map[string]struct {
		// before is what happened in the term before, pause how long it has been over.
		before func(s *fixture)
		pause  time.Duration
		want   string
	}{
		"with an audit":                      {func(s *fixture) { s.wake(lag, Audit) }, 0, "ann"},
		"with an audit that reported little": {func(s *fixture) { s.wrote("bob", "1") }, 0, "ann"},
		"after some days":                    {func(s *fixture) { s.wake(lag, Audit) }, useLifetime / 2, "ann"},
		"after a long time":                  {func(s *fixture) { s.wake(lag, Audit) }, useLifetime, ""},
		"without an audit":                   {func(s *fixture) { s.wake(lag, Admission) }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				facts := &log{}
				term(t, facts, func(s *fixture) {
					test.before(s)
					pass(lagsInterval)
				})
				term(t, facts, func(*fixture) { pass(time.Hour) }) // Nothing is reported in this one.
				pass(test.pause)
				term(t, facts, func(s *fixture) {
					pass(10 * time.Minute)
					event := managed("6", map[string]time.Duration{"kubectl": 0})
					fact := factOf("ann", Audit, update, event)
					if waits := s.AuditWait(event) > 0; waits != (test.want != "") {
						t.Errorf("a comparison waits: %t", waits)
					}
					s.submit(event)
					pass(2 * lag)
					s.Add([]Fact{fact}, false)
					pass(maxWait)
					if got := s.deliveries(); len(got) != 1 || got[0].author.Username != test.want {
						t.Errorf("delivered %+v, want %q", got, test.want)
					}
				})
			})
		})
	}
}
