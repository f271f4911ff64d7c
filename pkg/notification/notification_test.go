// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

const (
	completed, failed, conflicted = v1alpha1.SyncStateCompleted, v1alpha1.SyncStateFailed, v1alpha1.SyncStateConflicted
	retrying, gaveUp, dismissed   = v1alpha1.SyncStateRetrying, v1alpha1.SyncStateManualIntervention, v1alpha1.SyncStateDismissed
)

// TestFailureIsNotifiedOnce checks that a failure is notified once through all attempts, again when a user must intervene, and that its end is.
func TestFailureIsNotifiedOnce(t *testing.T) {
	s := newFixture(t, newSink(), record("run", failed))
	s.start()
	s.receives("Failed teams/alice")
	s.move("run", retrying, func(r *v1alpha1.SyncRecord) { r.Error = record("run", failed).Status.Error; r.Attempts = 2 })
	s.move("run", failed, func(r *v1alpha1.SyncRecord) { r.Attempts = 2 })
	s.staysQuiet(10)
	s.move("run", gaveUp)
	s.receives("Failed teams/alice", "Failed teams/alice")
	if n := s.inbox.received()[1].Notifications[0]; n.Severity != v1alpha1.SeverityError || n.Command != "kubectl slipstream retry run -n teams" {
		t.Errorf("%+v", n)
	}
	s.move("run", completed)
	s.receives("Failed teams/alice", "Failed teams/alice", "Completed teams/alice")
	s.stop()
	s.start()
	s.staysQuiet(10)
	status := s.reaches("all is counted", func(status *v1alpha1.NotificationSinkStatus) bool { return status.Pending == 0 })
	if status.Messages != 3 || status.Notifications != 3 || status.LastMessage != "Environment teams/alice: Synced" {
		t.Errorf("%+v", status)
	}
}

// TestEndIsNotified checks that the end of a failure is notified to a sink that is not notified of completed syncs, also if it ended while no
// process ran, but not if the sink was not notified of the failure.
func TestEndIsNotified(t *testing.T) {
	failures := func(spec *v1alpha1.NotificationSinkSpec) {
		spec.Events = []v1alpha1.NotificationEvent{v1alpha1.NotifyFailed, v1alpha1.NotifyDestinationFailing}
		spec.DigestWindow = &metav1.Duration{Duration: time.Hour}
	}
	destination := &v1alpha1.GitDestination{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "main", UID: "uid-of-main"}}
	destination.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPushFailed, Message: "the remote hung up",
		LastTransitionTime: metav1.NewTime(testkit.Noon),
	}}
	s := newFixture(t, newSink(failures), record("run", failed), destination)
	s.start()
	s.collects(2)
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	both := "Failed teams/alice, DestinationFailing teams/main"
	s.clock.Eventually("both fail", func() error {
		if lines := s.inbox.lines(); len(lines) != 1 || len(lines[0]) != len(both) {
			return fmt.Errorf("%q", lines)
		}
		return nil
	})
	s.stop()
	s.move("run", completed)
	s.start()
	first := s.inbox.lines()[0]
	s.receives(first, "Failed recovered teams/alice")
	fakeapi.Change(s.api, "teams", "main", func(d *v1alpha1.GitDestination) {
		d.Status.Conditions[0].Status, d.Status.Conditions[0].Message = metav1.ConditionTrue, "Up to date"
	})
	s.receives(first, "Failed recovered teams/alice", "DestinationFailing recovered teams/main")
	if got := s.inbox.received()[2].Notifications[0].Headline; got != "GitDestination teams/main: Writes again (Up to date)" {
		t.Errorf("headline = %q", got)
	}
}

// TestShortFailureIsNotSent checks that a failure that ends before it was sent is not.
func TestShortFailureIsNotSent(t *testing.T) {
	s := newFixture(t, newSink(func(spec *v1alpha1.NotificationSinkSpec) {
		spec.Events = []v1alpha1.NotificationEvent{v1alpha1.NotifyConflicted}
		spec.DigestWindow = &metav1.Duration{Duration: time.Hour}
	}), record("run", conflicted))
	s.start()
	s.collects(1)
	s.move("run", dismissed)
	s.reaches("it is removed", func(status *v1alpha1.NotificationSinkStatus) bool { return status.Pending == 0 })
	s.staysQuiet(90)
}

// TestOneDigestAWindow checks that what happens within a window is one message, and that it lists so much and counts the rest.
func TestOneDigestAWindow(t *testing.T) {
	s := newFixture(t, newSink(func(spec *v1alpha1.NotificationSinkSpec) { spec.DigestWindow = &metav1.Duration{Duration: time.Hour} }))
	for i := range message.MaxNotifications + 20 {
		s.api.Put(record(fmt.Sprintf("run-%d", i), completed))
	}
	s.api.Put(record("run-last", failed))
	s.start()
	s.collects(message.MaxNotifications + 21)
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	s.clock.Eventually("a message is sent", func() error {
		if received := len(s.inbox.received()); received != 1 {
			return fmt.Errorf("%d messages", received)
		}
		return nil
	})
	s.staysQuiet(5)
	m := s.inbox.received()[0]
	hasFailure := slices.ContainsFunc(m.Notifications, func(n message.Notification) bool { return n.Event == v1alpha1.NotifyFailed })
	if len(m.Notifications) != message.MaxNotifications || m.Total() != message.MaxNotifications+21 || !hasFailure {
		t.Errorf("%d listed of %d, with the failure: %t", len(m.Notifications), m.Total(), hasFailure)
	}
}

// TestRetry checks that a message is sent again unchanged until it is accepted, after the time that the receiver wants, also by the next process,
// and that what happens meanwhile is in the next one.
func TestRetry(t *testing.T) {
	s := newFixture(t, newSink(), record("run", failed))
	busy := delivery.Result{Outcome: delivery.Retry, Message: "429 Too Many Requests", RetryAfter: 15 * time.Minute}
	s.inbox.next(busy, busy)
	s.start()
	s.receives("Failed teams/alice")
	s.says(v1alpha1.ConditionDelivering, v1alpha1.ReasonDeliveryRetrying)
	s.clock.Advance(4, time.Minute)
	if got := len(s.inbox.received()); got != 1 {
		t.Errorf("%d attempts before the receiver wanted one", got)
	}
	s.move("run", gaveUp)
	s.receives("Failed teams/alice", "Failed teams/alice")
	s.stop()
	s.start()
	s.receives("Failed teams/alice", "Failed teams/alice", "Failed teams/alice", "Failed teams/alice")
	received := s.inbox.received()
	if received[0].ID != received[1].ID || received[1].ID != received[2].ID || received[2].ID == received[3].ID {
		t.Errorf("IDs: %s, %s, %s, %s", received[0].ID, received[1].ID, received[2].ID, received[3].ID)
	}
	if received[2].Notifications[0].Severity != v1alpha1.SeverityWarning || received[3].Notifications[0].Severity != v1alpha1.SeverityError {
		t.Errorf("%+v, then %+v", received[2].Notifications[0], received[3].Notifications[0])
	}
	s.says(v1alpha1.ConditionDelivering, v1alpha1.ReasonDelivering)
}

// TestInterrupted checks that a message that was being sent when the process ended is sent again with its ID.
func TestInterrupted(t *testing.T) {
	s := newFixture(t, newSink(), record("run", failed))
	s.inbox.hang = true
	s.start()
	s.receives("Failed teams/alice")
	s.stop()
	s.inbox.hang = false
	s.start()
	s.receives("Failed teams/alice", "Failed teams/alice")
	if received := s.inbox.received(); received[0].ID != received[1].ID {
		t.Errorf("IDs: %s, %s", received[0].ID, received[1].ID)
	}
	s.staysQuiet(5)
}

// TestRejected checks that a message that the receiver rejects is not sent again, and that later ones are.
func TestRejected(t *testing.T) {
	s := newFixture(t, newSink(), record("run", failed))
	s.inbox.next(delivery.Result{Outcome: delivery.Rejected, Message: "400 invalid_payload"})
	s.start()
	if got := s.says(v1alpha1.ConditionDelivering, v1alpha1.ReasonDeliveryRejected); !strings.Contains(got, "400 invalid_payload") {
		t.Errorf("message = %q", got)
	}
	s.staysQuiet(10)
	s.move("run", completed)
	s.receives("Failed teams/alice", "Completed teams/alice")
	s.says(v1alpha1.ConditionDelivering, v1alpha1.ReasonDelivering)
}

// TestReminders checks when what lasts is notified again, also if no process ran meanwhile, and that its end ends that.
func TestReminders(t *testing.T) {
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName}}
	policy.Spec.Reminders = v1alpha1.Reminders{
		After: []metav1.Duration{{Duration: 24 * time.Hour}, {Duration: 72 * time.Hour}}, Every: &metav1.Duration{Duration: 168 * time.Hour},
	}
	s := newFixture(t, newSink(), policy, record("run", conflicted))
	s.start()
	want := []string{"Conflicted teams/alice"}
	s.receives(want...)
	s.staysQuiet(60)
	for hours, reminder := range []int{1: 1, 2: 2, 3: 3} {
		if reminder == 0 {
			continue
		}
		s.clock.SetTime(testkit.Noon.Add([]time.Duration{0, 25 * time.Hour, 73 * time.Hour, 241 * time.Hour}[hours]))
		want = append(want, fmt.Sprintf("Conflicted reminder %d teams/alice", reminder))
		s.receives(want...)
	}
	s.stop()
	s.clock.SetTime(testkit.Noon.Add(4 * 168 * time.Hour))
	s.start()
	want = append(want, "Conflicted reminder 5 teams/alice")
	s.receives(want...)
	s.move("run", dismissed)
	want = append(want, "Dismissed teams/alice")
	s.clock.Eventually("the dismissal is sent", func() error {
		if got := s.inbox.lines(); len(got) < len(want) || !strings.Contains(got[len(want)-1], "Dismissed teams/alice") {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	s.clock.SetTime(s.clock.Now().Add(300 * time.Hour))
	s.staysQuiet(5)
}

// TestThreads checks that all messages about a subject are in the thread of the first one, also after a restart.
func TestThreads(t *testing.T) {
	s := newFixture(t, newSink(), record("run", failed))
	s.start()
	s.receives("Failed teams/alice")
	s.reaches("it is sent", func(status *v1alpha1.NotificationSinkStatus) bool { return status.Messages == 1 })
	s.stop()
	s.move("run", completed)
	s.start()
	s.receives("Failed teams/alice", "Completed teams/alice")
	if !slices.Equal(s.inbox.threads, []string{"", "message-1"}) {
		t.Errorf("threads = %q", s.inbox.threads)
	}
}

// TestPermissionLost checks that nothing is sent or collected from Changes while the editor lacks permissions, and everything else afterwards.
func TestPermissionLost(t *testing.T) {
	s := newFixture(t, newSink(), record("run", failed))
	s.reviewer.Deny(`user "jane"`, `user "jane" may not list environments`)
	s.start()
	if got := s.says(v1alpha1.ConditionReady, v1alpha1.ReasonPermissionLost); got != `user "jane" may not list environments` {
		t.Errorf("message = %q", got)
	}
	s.staysQuiet(5)
	s.reviewer.Allow()
	s.receives("Failed teams/alice")
}

// TestSuspended checks that a suspended sink is not notified later of what happened meanwhile, but of what still fails.
func TestSuspended(t *testing.T) {
	s := newFixture(t, newSink(func(spec *v1alpha1.NotificationSinkSpec) { spec.Suspend = true }))
	s.start()
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSuspended)
	s.api.Put(record("done", completed), record("run", failed))
	s.staysQuiet(2)
	s.clock.Advance(2, time.Minute)
	fakeapi.Change(s.api, "teams", "chat", func(sink *v1alpha1.NotificationSink) { sink.Spec.Suspend = false; sink.Generation++ })
	s.receives("Failed teams/alice")
	s.staysQuiet(2)
}

// TestAllSuspended checks that the SyncPolicy delays all messages.
func TestAllSuspended(t *testing.T) {
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName, Generation: 1}}
	policy.Spec.Suspend.Notifications = true
	s := newFixture(t, newSink(), policy, record("run", completed))
	s.start()
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonNotificationsSuspended)
	s.staysQuiet(5)
	fakeapi.Change(s.api, "", v1alpha1.SyncPolicyName, func(p *v1alpha1.SyncPolicy) { p.Spec.Suspend.Notifications = false; p.Generation++ })
	s.receives("Completed teams/alice")
}

// TestCatalogNotices checks that the SyncPolicy suspends the notifications of changes of catalogs, and no others.
func TestCatalogNotices(t *testing.T) {
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName, Generation: 1}}
	policy.Spec.Suspend.CatalogNotices = true
	s := newFixture(t, newSink(), policy, prompting(), record("run", failed))
	s.start()
	s.receives("Failed teams/alice")
	s.staysQuiet(5)
	fakeapi.Change(s.api, "", v1alpha1.SyncPolicyName, func(p *v1alpha1.SyncPolicy) { p.Spec.Suspend.CatalogNotices = false; p.Generation++ })
	s.receives("Failed teams/alice", "Prompted teams/alice")
	if n := s.inbox.received()[1].Notifications[0]; n.Headline != "Environment teams/alice: 1 workload changed" {
		t.Errorf("%+v", n)
	}
}

// TestPrompt checks that a prompt is notified once, anew when the catalog offers something else, and not any more once it is dismissed.
func TestPrompt(t *testing.T) {
	s := newFixture(t, newSink(), prompting())
	s.start()
	s.receives("Prompted teams/alice")
	fakeapi.Change(s.api, "teams", "alice", func(e *v1alpha1.Environment) { e.Labels = map[string]string{"team": "a"} })
	s.staysQuiet(5)
	fakeapi.Change(s.api, "teams", "alice", func(e *v1alpha1.Environment) { e.Status.LatestCatalogSync, e.Status.LatestRevision = "shop-3", 3 })
	s.receives("Prompted teams/alice", "Prompted teams/alice")
	now := metav1.NewTime(s.clock.Now())
	fakeapi.Change(s.api, "teams", "alice", func(e *v1alpha1.Environment) {
		e.Status.DismissedCatalogSync, e.Status.DismissedBy, e.Status.DismissedAt = "shop-3", "jane", &now
	})
	s.receives("Prompted teams/alice", "Prompted teams/alice", "Dismissed teams/alice")
	s.clock.SetTime(s.clock.Now().Add(200 * time.Hour))
	s.staysQuiet(5)
	if n := s.inbox.received()[2].Notifications[0]; n.Actor != "jane" {
		t.Errorf("%+v", n)
	}
}

// TestWindows checks that messages wait for the end of a maintenance window.
func TestWindows(t *testing.T) {
	s := newFixture(t, newSink(func(spec *v1alpha1.NotificationSinkSpec) {
		spec.Windows = []v1alpha1.SyncWindow{{
			Name: "maintenance", Kind: v1alpha1.SyncWindowDeny, Schedule: "0 11 * * *", Duration: metav1.Duration{Duration: 3 * time.Hour},
		}}
	}), record("run", failed))
	s.start()
	s.collects(1)
	s.clock.SetTime(testkit.Noon.Add(100 * time.Minute))
	s.staysQuiet(5)
	s.clock.SetTime(testkit.Noon.Add(125 * time.Minute))
	s.receives("Failed teams/alice")
}

// TestMaxPerMinute checks that what exceeds the limit is collected into the next message.
func TestMaxPerMinute(t *testing.T) {
	s := newFixture(t, newSink(func(spec *v1alpha1.NotificationSinkSpec) {
		spec.DigestWindow, spec.MaxPerMinute = &metav1.Duration{}, ptr.To[int32](1)
	}), record("first", completed))
	s.start()
	s.receives("Completed teams/alice")
	for i := range 5 {
		s.api.Put(record(fmt.Sprintf("next-%d", i), completed))
	}
	s.collects(5)
	s.clock.Eventually("the others are sent", func() error {
		if received := s.inbox.received(); len(received) != 2 || received[1].Total() != 5 {
			return fmt.Errorf("%q", s.inbox.lines())
		}
		return nil
	})
}

// TestDeletedSink checks that the rows of a deleted sink are deleted, also if no process ran.
func TestDeletedSink(t *testing.T) {
	for name, running := range map[string]bool{"while a process runs": true, "while none does": false} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, newSink(), record("run", failed))
			s.start()
			s.receives("Failed teams/alice")
			if !running {
				s.stop()
			}
			fakeapi.Delete[*v1alpha1.NotificationSink](s.api, "teams", "chat")
			if !running {
				s.start()
			}
			s.clock.Eventually("no rows are left", func() error {
				if keys := s.keys(); len(keys) > 0 {
					return fmt.Errorf("%q", keys)
				}
				return nil
			})
		})
	}
}

// TestStoreIsFull checks that a store that rejects writes delays messages, and that nothing is lost if the process ends meanwhile: when
// notifications are collected, when a message is begun, and when it has been delivered.
func TestStoreIsFull(t *testing.T) {
	for name, tt := range map[string]struct {
		fill func(s *fixture)
		want []string
	}{
		"collected": {func(s *fixture) { s.full.Store(true); s.start() }, []string{"Failed teams/alice"}},
		"begun":     {func(s *fixture) { s.start(); s.collected(); s.full.Store(true) }, []string{"Failed teams/alice"}},
		"delivered": {func(s *fixture) {
			s.inbox.during = func() { s.full.Store(true) }
			s.start()
		}, []string{"Failed teams/alice", "Failed teams/alice"}}, // with the same ID
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, newSink(), record("run", failed))
			tt.fill(s)
			if got := s.says(v1alpha1.ConditionReady, v1alpha1.ReasonProgressing); !strings.Contains(got, "cannot store") {
				t.Errorf("message = %q", got)
			}
			s.staysQuiet(5)
			s.stop()
			s.inbox.during = nil
			s.full.Store(false)
			s.start()
			s.receives(tt.want...)
			if got := s.inbox.received(); len(got) == 2 && got[0].ID != got[1].ID {
				t.Errorf("IDs: %s, %s", got[0].ID, got[1].ID)
			}
			s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
			s.staysQuiet(5)
		})
	}
}

// collected waits until a notification is stored.
func (s *fixture) collected() {
	s.Helper()
	s.reaches("it is collected", func(status *v1alpha1.NotificationSinkStatus) bool { return status.Pending == 1 })
}

// TestStoreRecovers checks that a process that could not store the begin of a message stores it before it is sent.
func TestStoreRecovers(t *testing.T) {
	s := newFixture(t, newSink(), record("run", failed))
	s.start()
	s.collected()
	s.full.Store(true)
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonProgressing)
	s.inbox.hang = true
	s.full.Store(false)
	s.receives("Failed teams/alice")
	s.stop()
	s.inbox.hang = false
	s.start()
	s.receives("Failed teams/alice", "Failed teams/alice")
	if got := s.inbox.received(); got[0].ID != got[1].ID {
		t.Errorf("IDs: %s, %s", got[0].ID, got[1].ID)
	}
}

// edit changes the spec of the sink.
func (s *fixture) edit(change func(*v1alpha1.NotificationSinkSpec)) {
	s.Helper()
	fakeapi.Change(s.api, "teams", "chat", func(sink *v1alpha1.NotificationSink) {
		change(&sink.Spec)
		sink.Generation++
	})
}

// TestNarrowedSelection checks that what an edit no longer selects is not sent, pending or not, and not notified as ended.
func TestNarrowedSelection(t *testing.T) {
	s := newFixture(t, newSink(), record("run", conflicted))
	s.start()
	s.receives("Conflicted teams/alice")
	s.edit(func(spec *v1alpha1.NotificationSinkSpec) { spec.DigestWindow = &metav1.Duration{Duration: time.Hour} })
	s.api.Put(record("done", completed))
	s.reaches("it is collected", func(status *v1alpha1.NotificationSinkStatus) bool { return status.Pending == 1 })
	s.edit(func(spec *v1alpha1.NotificationSinkSpec) {
		spec.DigestWindow, spec.Events = &metav1.Duration{}, []v1alpha1.NotificationEvent{v1alpha1.NotifyFailed}
	})
	s.reaches("it is dropped", func(status *v1alpha1.NotificationSinkStatus) bool {
		return status.Pending == 0 && status.ObservedGeneration == 3
	})
	s.staysQuiet(5)
}

// TestNoFalseEnd checks that a failure has not ended when it is less severe, its object is suspended or deleted.
func TestNoFalseEnd(t *testing.T) {
	destination := &v1alpha1.GitDestination{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "main", UID: "uid-of-main"}}
	destination.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPushFailed, Message: "the remote hung up",
		LastTransitionTime: metav1.NewTime(testkit.Noon),
	}}
	s := newFixture(t, newSink(func(spec *v1alpha1.NotificationSinkSpec) { spec.MinSeverity = v1alpha1.SeverityError }), destination)
	s.start()
	s.receives("DestinationFailing teams/main")
	s.api.Put(record("run", gaveUp))
	s.receives("DestinationFailing teams/main", "Failed teams/alice")
	s.move("run", retrying, func(r *v1alpha1.SyncRecord) { r.Error = record("run", failed).Status.Error })
	fakeapi.Change(s.api, "teams", "main", func(d *v1alpha1.GitDestination) { d.Status.Conditions[0].Reason = v1alpha1.ReasonSuspended })
	s.staysQuiet(5)
	fakeapi.Delete[*v1alpha1.GitDestination](s.api, "teams", "main")
	s.staysQuiet(5)
	s.move("run", completed)
	s.receives("DestinationFailing teams/main", "Failed teams/alice", "Failed recovered teams/alice")
}

// TestNewPolicyOfReminders checks that earlier reminders of a changed SyncPolicy are not missed.
func TestNewPolicyOfReminders(t *testing.T) {
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName, Generation: 1}}
	s := newFixture(t, newSink(), policy, record("run", conflicted))
	s.start()
	s.receives("Conflicted teams/alice")
	fakeapi.Change(s.api, "", v1alpha1.SyncPolicyName, func(p *v1alpha1.SyncPolicy) {
		p.Spec.Reminders.After, p.Generation = []metav1.Duration{{Duration: 10 * time.Minute}}, 2
	})
	s.receives("Conflicted teams/alice", "Conflicted reminder 1 teams/alice")
}

// TestStatusOutlivesProcess checks that the next process does not report that deliveries have recovered.
func TestStatusOutlivesProcess(t *testing.T) {
	s := newFixture(t, newSink(), record("run", failed))
	s.inbox.next(delivery.Result{Outcome: delivery.Rejected, Message: "400 invalid_payload"})
	s.start()
	s.says(v1alpha1.ConditionDelivering, v1alpha1.ReasonDeliveryRejected)
	s.stop()
	s.start()
	s.staysQuiet(2)
	s.says(v1alpha1.ConditionDelivering, v1alpha1.ReasonDeliveryRejected)
	if lines := s.events.Lines(); len(lines) > 0 {
		t.Errorf("Events: %q", lines)
	}
}
