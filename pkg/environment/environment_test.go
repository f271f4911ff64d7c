// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// automatic enables automatic syncs by eve.
func automatic(e *v1alpha1.Environment) {
	e.Spec.AutoSync, e.Status.AutomatedBy = true, &v1alpha1.AutomatedBy{Username: "eve"}
}

// held waits until the condition Held of alice has a reason; an empty one means that syncs are not held.
func (s *fixture) held(reason string) {
	s.Helper()
	s.reaches("Held "+reason, func(e *v1alpha1.Environment) bool {
		held := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionHeld)
		if reason == "" {
			return held != nil && held.Status == metav1.ConditionFalse
		}
		return held != nil && held.Status == metav1.ConditionTrue && held.Reason == reason
	})
}

// stalled waits until the condition Stalled of alice has a reason.
func (s *fixture) stalled(reason string) {
	s.Helper()
	s.reaches("Stalled "+reason, func(e *v1alpha1.Environment) bool {
		stalled := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionStalled)
		if reason == "" {
			return e.Status.ObservedGeneration == e.Generation && stalled == nil
		}
		return stalled != nil && stalled.Reason == reason
	})
}

// has expects the target to have the images.
func (s *fixture) has(want string) {
	s.Helper()
	if got := s.images(); got != want {
		s.Errorf("images of the target = %q, want %q", got, want)
	}
}

func TestRequestedSync(t *testing.T) {
	s := newFixture(t)
	s.start(0)
	s.reaches("the offer", func(e *v1alpha1.Environment) bool {
		return e.Status.LatestRevision == 1 && e.Status.ChangedWorkloadCount == 2
	})
	s.expectRecords()
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.expectRecords("Environment one Completed by jane r1")
	s.has("web:1 worker:1")
	s.offer(2, image(web, "2"), worker)
	s.reaches("the next offer", func(e *v1alpha1.Environment) bool {
		return e.Status.LatestRevision == 2 && e.Status.ChangedWorkloadCount == 1
	})
	s.pass(60)
	s.has("web:1 worker:1")
	status := s.environment("alice").Status
	if status.AppliedCatalogSync != "shop-r1" || status.LatestCatalogSync != "shop-r2" || status.LastCatalogSyncedAt == nil ||
		status.LastDependencySyncedAt == nil || len(status.History) != 1 || status.History[0].SyncStatus != s.syncStatuses()[0].Name {
		t.Errorf("%+v", status)
	}
}

func TestSyncByItself(t *testing.T) {
	s := newFixture(t, automatic)
	s.start(0)
	s.applied(1)
	s.offer(2, image(web, "2"), worker)
	s.applied(2)
	s.expectRecords("Environment auto.shop-r1.1 Completed r1", "Environment auto.shop-r2.1 Completed r2")
	s.has("web:2 worker:1")
	s.edit("eve", func(spec *v1alpha1.EnvironmentSpec) {
		spec.Patches = []v1alpha1.Patch{{
			Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: "worker"}, Type: v1alpha1.PatchStrategicMerge,
			Patch: `{"spec":{"template":{"spec":{"containers":[{"name":"worker","image":"worker:mine"}]}}}}`,
		}}
	}, "patches")
	s.expectRecords("Environment auto.shop-r1.1 Completed r1", "Environment auto.shop-r2.1 Completed r2",
		"Environment auto.shop-r2.2 Completed r2")
	s.has("web:2 worker:mine")
}

// TestEditWithoutEffect checks that an edit that does not change the planned objects starts no sync.
func TestEditWithoutEffect(t *testing.T) {
	s := newFixture(t, automatic)
	s.start(0)
	s.applied(1)
	s.edit("eve", func(spec *v1alpha1.EnvironmentSpec) { spec.TTL = &metav1.Duration{Duration: 1000 * time.Hour} }, "ttl")
	s.reaches("the edit", func(e *v1alpha1.Environment) bool {
		return e.Status.ObservedGeneration == e.Generation && e.Status.ExpiresAt != nil
	})
	s.pass(60)
	s.expectRecords("Environment auto.shop-r1.1 Completed r1")
}

func TestWindows(t *testing.T) {
	t.Run("hold automatic syncs", func(t *testing.T) {
		s := newFixture(t, automatic, evening)
		s.start(0)
		s.held(v1alpha1.ReasonWindowClosed)
		if message := meta.FindStatusCondition(s.environment("alice").Status.Conditions, v1alpha1.ConditionHeld).
			Message; message != "window evening opens 20:00 UTC" {
			t.Error(message)
		}
		s.expectRecords("Environment auto.shop-r1.1 Pending r1")
		s.has("")
		s.beforeEvening()
		s.clock.SetTime(noon.Add(8 * time.Hour))
		s.applied(1)
		if at := s.environment("alice").Status.LastCatalogSyncedAt; at.Before(&metav1.Time{Time: noon.Add(8 * time.Hour)}) {
			t.Errorf("synced at %s, outside of the window", at)
		}
	})
	t.Run("hold a request", func(t *testing.T) {
		s := newFixture(t, evening)
		s.start(0)
		s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
		s.held(v1alpha1.ReasonWindowClosed)
		s.expectRecords("Environment one Pending by jane r1")
		s.ask("two", "jane", v1alpha1.SyncRequestSpec{Force: true})
		s.applied(1)
		s.expectRecords("Environment one Superseded by jane r1", "Environment two Completed by jane r1")
		s.beforeEvening()
	})
}

func TestKillSwitch(t *testing.T) {
	s := newFixture(t, automatic)
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName}}
	policy.Spec.Suspend.EnvironmentAutoSync = true
	s.api.Put(policy)
	s.start(0)
	s.held(v1alpha1.ReasonSuspended)
	s.pass(60)
	s.expectRecords()
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	policy.Spec.Suspend.EnvironmentAutoSync = false
	s.offer(2, image(web, "2"), worker)
	s.api.Put(policy)
	s.applied(2)
}

func TestPin(t *testing.T) {
	s := newFixture(t, automatic)
	s.start(0)
	s.applied(1)
	s.offer(2, image(web, "2"), worker)
	s.applied(2)
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = new(int64(1)) }, pinField)
	s.applied(1)
	s.has("web:1 worker:1")
	s.offer(3, image(web, "3"), worker)
	s.held(v1alpha1.ReasonPinned)
	s.pass(60)
	s.expectRecords("Environment auto.shop-r1.1 Completed r1", "Environment auto.shop-r2.1 Completed r2",
		"Environment generation-2 Completed by jane r1")
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.reaches("the request is over", func(e *v1alpha1.Environment) bool { return len(e.Status.PendingRequests) == 0 })
	s.applied(1)
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = nil }, pinField)
	s.applied(3)
	var history []string
	for _, entry := range s.environment("alice").Status.History {
		history = append(history, fmt.Sprint(entry.Revision))
	}
	if got := strings.Join(history, " "); got != "3 1 2" {
		t.Errorf("history = %s", got)
	}
}

func TestShadow(t *testing.T) {
	s := newFixture(t, automatic, func(e *v1alpha1.Environment) { e.Spec.Shadow = true })
	s.start(0)
	s.expectRecords("Environment auto.shop-r1.1 Completed preview r1")
	s.pass(60)
	s.expectRecords("Environment auto.shop-r1.1 Completed preview r1")
	s.has("")
	if status := s.environment("alice").Status; status.AppliedRevision != 0 || len(status.ActiveSyncs) > 0 {
		t.Errorf("%+v", status)
	}
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.has("web:1 worker:1")
}

// refuse makes the cluster reject a request until it is called with an empty one.
func (s *fixture) refuse(refused string) {
	s.cluster.Answer(func(request string) *metav1.Status {
		if refused != "" && request == refused {
			return environmenttest.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		}
		return environmenttest.CountWrites(s.process)(request)
	})
}

func TestRetries(t *testing.T) {
	s := newFixture(t, automatic)
	s.refuse("dry PATCH shop-alice/deployments/web")
	s.start(0)
	s.expectRecords("Environment auto.shop-r1.1 ManualIntervention r1")
	record := s.syncStatuses()[0]
	if record.Status.Attempts != 5 || record.Status.Error == nil {
		t.Errorf("%+v", record.Status)
	}
	s.reaches("the trouble", func(e *v1alpha1.Environment) bool {
		return e.Status.LastError != nil && len(e.Status.ActiveSyncs) == 0 &&
			meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionStalled)
	})
	if events := s.events.Lines(); !slices.ContainsFunc(
		events, func(line string) bool { return strings.Contains(line, "Warning ManualIntervention") }) {
		t.Errorf("Events = %q", events)
	}
	s.pass(60)
	s.expectRecords("Environment auto.shop-r1.1 ManualIntervention r1")
	s.refuse("")
	retried, err := syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: "jane", At: s.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.api.Write(t.Context(), retried); err != nil {
		t.Fatal(err)
	}
	s.applied(1)
	if status := s.environment("alice").Status; status.LastError != nil {
		t.Errorf("%+v", status.LastError)
	}
}

// TestNewerRevisionTakesThePlace checks that a newer revision supersedes a failed sync.
func TestNewerRevisionTakesThePlace(t *testing.T) {
	s := newFixture(t, automatic)
	s.refuse("dry PATCH shop-alice/deployments/web")
	s.start(0)
	s.expectRecords("Environment auto.shop-r1.1 ManualIntervention r1")
	s.offer(2, worker)
	s.applied(2)
	s.expectRecords("Environment auto.shop-r1.1 Superseded r1", "Environment auto.shop-r2.1 Completed r2")
}

func TestRateLimit(t *testing.T) {
	s := newFixture(t, automatic)
	policy := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName}}
	policy.Spec.MaxSyncsPerMinute = new(int32(1))
	s.api.Put(policy)
	s.clock.Step(time.Minute)
	other := environmenttest.Environment()
	other.Name, other.UID, other.Spec.TargetNamespace, other.Spec.AutoSync = "bob", "33333333-3333-3333-3333-333333333333", "shop-bob", true
	s.addNamespace("shop-bob")
	s.addEnvironment(other)
	s.start(0)
	s.await("one of both waits", func() error {
		for _, name := range []string{"alice", "bob"} {
			held := meta.FindStatusCondition(s.environment(name).Status.Conditions, v1alpha1.ConditionHeld)
			if held != nil && held.Reason == v1alpha1.ReasonRateLimited {
				return nil
			}
		}
		return errors.New("neither environment reports it")
	})
	s.clock.Step(measurePeriod)
	s.await("the policy says that one waits", s.waits(1))
	s.eventually("both are synced", func() error {
		if a, b := s.environment("alice").Status.AppliedRevision, s.environment("bob").Status.AppliedRevision; a+b < 2 {
			return fmt.Errorf("applied revisions = %d and %d", a, b)
		}
		return nil
	})
	s.eventually("the policy says that none waits", s.waits(0))
}

// waits waits until the SyncPolicy reports a number of waiting syncs.
func (s *fixture) waits(number int64) func() error {
	return func() error {
		policy, err := s.api.Client.ConfigbutlerV1alpha1().SyncPolicies().Get(s.Context(), v1alpha1.SyncPolicyName, metav1.GetOptions{})
		if err == nil && policy.Status.SyncsWaiting != number {
			err = fmt.Errorf("syncsWaiting = %d", policy.Status.SyncsWaiting)
		}
		return err
	}
}

// TestStatefulSetWithoutItsService has a catalog with a StatefulSet whose Service does not exist, which Kubernetes runs, too.
func TestStatefulSetWithoutItsService(t *testing.T) {
	s := newFixture(t, automatic)
	s.offer(1, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {serviceName: peers, "+
		"selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: 'db:1'}]}}}}")
	s.start(0)
	s.applied(1)
	s.depends(v1alpha1.ReasonUpToDate, "")
	record := s.syncStatuses()[0]
	if want := []string{"Service peers is not in production: StatefulSet db refers to it"}; !slices.Equal(record.Status.Warnings, want) {
		t.Errorf("warnings = %q, want %q", record.Status.Warnings, want)
	}
}
