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

// A namespace is admitted by a catalog when it gets the label that the catalog asks for.
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

// evening is a window that opens long after everything in a test has happened.
func evening(e *v1alpha1.Environment) {
	e.Spec.SyncWindows = []v1alpha1.SyncWindow{{
		Name: "evening", Kind: v1alpha1.SyncWindowAllow, Schedule: "0 20 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC",
	}}
}

// beforeEvening expects that nothing has waited for the window.
func (s *fixture) beforeEvening() {
	s.Helper()
	if !s.clock.Now().Before(noon.Add(8 * time.Hour)) {
		s.Errorf("it has taken until %s", s.clock.Now())
	}
}

var onlyWorker = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "worker"}}

// What waits for its window goes on waiting when somebody has a part synced before.
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

// What has failed is tried again when somebody has had a part synced meanwhile.
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
	s.eventually("it is tried again, or waits for somebody", func() error {
		for _, line := range s.recordLines() {
			if line == "Environment one Completed by jane r1" || line == "Environment one ManualIntervention by jane r1" {
				return nil
			}
		}
		return fmt.Errorf("records: %q", s.recordLines())
	})
}

// Who does not want to wait does not, also when somebody before does.
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
	s.reaches("both are answered", func(e *v1alpha1.Environment) bool { return len(e.Status.PendingRequests) == 0 })
	s.expectRecords("Environment one Completed by jane r1", "Dependency batch Completed by jane", "Dependency three Completed by joe")
	s.beforeEvening()
}

// What begins by itself does not take the place of a request that need not wait for windows, and has nothing left to do then.
func TestForcedRequestBesideWhatBeginsByItself(t *testing.T) {
	s := newFixture(t, automatic, evening)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{Force: true})
	s.clock.Step(time.Minute)
	s.start(0)
	s.applied(1)
	s.beforeEvening()
	for _, line := range s.recordLines() {
		if line != "Environment one Completed by jane r1" && line != "Environment auto.shop-r1.1 Superseded r1" {
			t.Errorf("there is %s", line)
		}
	}
}

// A revision that an environment was pinned to is not brought any more when it is not pinned any more, and no other in its place.
func TestPinThatIsTakenBack(t *testing.T) {
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
	s.expectRecords("Environment one Completed by jane r1", "Environment two Completed by jane r2", "Environment generation-2 Superseded by jane r1")
	s.has("web:2 worker:1")
}

// What cannot be found anew keeps nobody from syncing, and is found when it can be.
func TestRediscoveryThatFails(t *testing.T) {
	s := newFixture(t)
	s.detector.fail(errors.New("the source does not answer"))
	s.request(v1alpha1.PendingEnvironmentRequest{ID: "one", Actor: "jane", Type: v1alpha1.EnvironmentRequestRediscover})
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.expectRecords("Environment two Completed by jane r1")
	s.reaches("it goes on to be asked for", func(e *v1alpha1.Environment) bool {
		return e.Status.AppliedRevision == 1 && len(e.Status.PendingRequests) == 1
	})
	s.detector.fail(nil)
	s.applied(1)
}
