// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// TestNamespaceThatIsAdmittedLater adds the label that the access policy of the catalog requires to the namespace.
func TestNamespaceThatIsAdmittedLater(t *testing.T) {
	s := newFixture(t, automatic, func(e *v1alpha1.Environment) { e.Spec.CatalogRef.Namespace = "platform" })
	s.addNamespace(environmenttest.Teams)
	s.catalog.Namespace = "platform"
	s.catalog.Spec.AccessPolicy = &v1alpha1.CatalogAccessPolicy{NamespacedRules: v1alpha1.NamespacedRules{
		Mode: v1alpha1.AccessModeFromSelector, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"shop": "yes"}},
	}}
	s.offer(1, web, worker)
	s.start(0)
	s.stalled(v1alpha1.ReasonAccessNotGranted)
	err := s.meta.Tracker().Update(namespaces, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: environmenttest.Teams, Labels: map[string]string{"shop": "yes"}},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	s.applied(1)
}

// evening is a sync window that opens long after the end of a test.
func evening(e *v1alpha1.Environment) {
	e.Spec.SyncWindows = []v1alpha1.SyncWindow{{
		Name: "evening", Kind: v1alpha1.SyncWindowAllow, Schedule: "0 20 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC",
	}}
}

// beforeEvening expects that the sync window has not opened yet.
func (s *fixture) beforeEvening() {
	s.Helper()
	if !s.clock.Now().Before(noon.Add(8 * time.Hour)) {
		s.Errorf("it is %s, want a time before the window", s.clock.Now())
	}
}

var onlyWorker = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "worker"}}

// TestPartBeforeTheWindow requests a sync of some workloads while an automatic sync waits for its window.
func TestPartBeforeTheWindow(t *testing.T) {
	s := newFixture(t, automatic, evening)
	s.start(0)
	s.expectRecords("Environment auto.shop-r1.1 Pending r1")
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{Force: true, Workloads: onlyWorker})
	s.expectRecords("Environment auto.shop-r1.1 Pending r1", "Environment one Completed by jane r1")
	s.has("worker:1")
	s.beforeEvening()
	s.clock.SetTime(noon.Add(8 * time.Hour))
	s.applied(1)
	s.expectRecords("Environment auto.shop-r1.1 Completed r1", "Environment one Completed by jane r1")
}

// TestPartBesideAFailure requests a sync of some workloads while a failed sync is retried.
func TestPartBesideAFailure(t *testing.T) {
	s := newFixture(t)
	s.refuse("dry PATCH shop-alice/deployments/web")
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.reaches("a failure", func(e *v1alpha1.Environment) bool { return e.Status.LastError != nil })
	s.ask("two", "joe", v1alpha1.SyncRequestSpec{Workloads: onlyWorker})
	s.reaches("the part", func(*v1alpha1.Environment) bool { return s.images() == "worker:1" })
	s.refuse("")
	s.ask("three", "joe", v1alpha1.SyncRequestSpec{Workloads: onlyWorker})
	s.eventually("the failed sync is retried, or needs manual intervention", func() error {
		for _, line := range s.recordLines() {
			if line == "Environment one Completed by jane r1" || line == "Environment one ManualIntervention by jane r1" {
				return nil
			}
		}
		return fmt.Errorf("records: %q", s.recordLines())
	})
}

// TestForcedRefreshBehindOneThatWaits forces a refresh while an earlier one waits for the window.
func TestForcedRefreshBehindOneThatWaits(t *testing.T) {
	s := newFixture(t, evening)
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{Force: true})
	s.applied(1)
	s.prompt("batch")
	s.reaches("the prompt", func(e *v1alpha1.Environment) bool { return e.Status.LatestDependencySync != "" })
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})
	s.held(v1alpha1.ReasonWindowClosed)
	s.ask("three", "joe", v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster, Force: true})
	s.reaches("both requests are processed", func(e *v1alpha1.Environment) bool { return len(e.Status.PendingRequests) == 0 })
	s.expectRecords("Environment one Completed by jane r1", "Dependency batch Completed by jane", "Dependency three Completed by joe")
	s.beforeEvening()
}

// TestForcedRequestBesideWhatBeginsByItself has a forced request and an automatic sync, which is superseded by it.
func TestForcedRequestBesideWhatBeginsByItself(t *testing.T) {
	s := newFixture(t, automatic, evening)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{Force: true})
	s.clock.Step(time.Minute)
	s.start(0)
	s.applied(1)
	s.beforeEvening()
	for _, line := range s.recordLines() {
		if line != "Environment one Completed by jane r1" && line != "Environment auto.shop-r1.1 Superseded r1" {
			t.Errorf("unexpected record: %s", line)
		}
	}
}

// TestRemovedPin removes a pin before its revision was applied. Neither that revision nor another one is applied.
func TestRemovedPin(t *testing.T) {
	s := newFixture(t)
	s.start(0)
	for revision, id := range []string{"one", "two"} {
		if revision > 0 {
			s.offer(2, image(web, "2"), worker)
		}
		s.ask(id, "jane", v1alpha1.SyncRequestSpec{})
		s.applied(int64(revision) + 1)
	}
	s.refuse("dry PATCH shop-alice/deployments/web")
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = new(int64(1)) }, pinField)
	s.reaches("a failure", func(e *v1alpha1.Environment) bool { return e.Status.LastError != nil })
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = nil }, pinField)
	s.offer(3, image(web, "3"), worker)
	s.refuse("")
	s.applied(2)
	s.pass(60)
	s.expectRecords("Environment one Completed by jane r1", "Environment two Completed by jane r2",
		"Environment generation-2 Superseded by jane r1")
	s.has("web:2 worker:1")
}

// TestRediscoveryThatFails checks that a failing rediscovery does not block syncs, and is retried.
func TestRediscoveryThatFails(t *testing.T) {
	s := newFixture(t)
	s.detector.fail(errors.New("the source does not answer"))
	s.request(v1alpha1.PendingEnvironmentRequest{ID: "one", Actor: "jane", Type: v1alpha1.EnvironmentRequestRediscover})
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.expectRecords("Environment two Completed by jane r1")
	s.reaches("the rediscovery is pending", func(e *v1alpha1.Environment) bool {
		return e.Status.AppliedRevision == 1 && len(e.Status.PendingRequests) == 1
	})
	s.detector.fail(nil)
	s.applied(1)
}
