// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
)

// seen records noon as the time at which the source's change in a revision was detected.
func (s *fixture) seen(revision int64) {
	s.Helper()
	s.api.Put(&v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.catalog.Namespace, Name: fmt.Sprintf("shop-r%d", revision)},
		Spec: v1alpha1.SyncStatusSpec{
			Type:    v1alpha1.SyncTypeCatalog,
			Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectAppCatalog, Name: s.catalog.Name, UID: s.catalog.UID},
		},
		Status: v1alpha1.SyncRecord{
			State: v1alpha1.SyncStateAutoApplied, AutoTriggered: true, DetectedAt: metav1.NewTime(noon), Revision: revision,
		},
	})
}

// added waits until metrics have grown by exactly the wanted values.
func (s *fixture) added(before, want map[string]float64, now func(testing.TB) map[string]float64) {
	s.Helper()
	s.await("the metrics", func() error {
		after := now(s)
		for name, by := range want {
			if got := after[name] - before[name]; got != by {
				return fmt.Errorf("%s grew by %v, want %v", name, got, by)
			}
		}
		return nil
	})
}

// TestRunsAreMeasured checks that a revision is measured when an environment applies it for the first time, by an
// automatic sync or on request.
func TestRunsAreMeasured(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*v1alpha1.Environment)
		// ask requests a sync, if it is not automatic.
		ask             func(s *fixture, id string)
		action, trigger string
	}{
		"by itself": {automatic, func(*fixture, string) {}, "Catalog", "automatic"},
		"asked for": {
			func(*v1alpha1.Environment) {}, func(s *fixture, id string) { s.ask(id, "jane", v1alpha1.SyncRequestSpec{}) }, "All", "requested",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, test.prepare)
			for revision := range int64(3) {
				s.seen(revision + 1)
			}
			values, sums := metrictest.Values(t), metrictest.Sums(t)
			runs := fmt.Sprintf("environment_syncs_total %s Completed %s Environment", test.action, test.trigger)
			source := "environment_source_change_duration_seconds catalog " + test.trigger
			s.start(0)
			test.ask(s, "one")
			s.applied(1)
			s.added(values, map[string]float64{runs: 1, source: 0}, metrictest.Values)
			s.stop() // Otherwise the first of the two might be synced alone.
			s.offer(2, image(web, "2"), worker)
			s.offer(3, image(web, "3"), worker)
			s.start(0)
			test.ask(s, "two")
			s.applied(3)
			took := s.environment("alice").Status.LastCatalogSyncedAt.Sub(noon)
			s.added(values, map[string]float64{runs: 2, source: 2}, metrictest.Values)
			s.added(sums, map[string]float64{source: 2 * took.Seconds()}, metrictest.Sums)
			s.stop()
			s.start(0)
			s.pass(10)
			s.edit("eve", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = new(int64(2)) }, "pinnedRevision")
			s.applied(2)
			s.edit("eve", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = nil }, "pinnedRevision")
			test.ask(s, "three")
			s.applied(3)
			s.added(values, map[string]float64{runs: 3, source: 2}, metrictest.Values)
		})
	}
}

func TestChangesOfDependenciesAreMeasured(t *testing.T) {
	end := metav1.NewTime(noon.Add(90 * time.Second))
	record := func(change func(*v1alpha1.SyncStatus)) *v1alpha1.SyncStatus {
		r := &v1alpha1.SyncStatus{
			Spec:   v1alpha1.SyncStatusSpec{Type: v1alpha1.SyncTypeDependency},
			Status: v1alpha1.SyncRecord{State: v1alpha1.SyncStateCompleted, AutoTriggered: true, DetectedAt: metav1.NewTime(noon), ResolvedAt: &end},
		}
		change(r)
		return r
	}
	requested := func(r *v1alpha1.SyncStatus) { r.Status.AutoTriggered, r.Status.Actor = false, "jane" }
	for name, test := range map[string]struct {
		change func(*v1alpha1.SyncStatus)
		want   map[string]float64
	}{
		"by itself": {func(*v1alpha1.SyncStatus) {}, map[string]float64{"automatic": 90}},
		"a user asks for what has changed": {func(r *v1alpha1.SyncStatus) {
			requested(r)
			r.Annotations = map[string]string{annotationRequest: "one"}
		}, map[string]float64{"requested": 90}},
		"a user asks, and nothing has changed": {requested, nil},
		"a preview":                            {func(r *v1alpha1.SyncStatus) { r.Status.Preview = true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := metrictest.Sums(t)
			r := &reconciliation{&environments{}, &state{environment: environmenttest.Environment()}}
			r.measureSource(t.Context(), &v1alpha1.EnvironmentStatus{AppliedRevision: 1}, []*v1alpha1.SyncStatus{record(test.change)})
			after := metrictest.Sums(t)
			for _, trigger := range []string{"automatic", "requested"} {
				key := "environment_source_change_duration_seconds dependencies " + trigger
				if got := after[key] - before[key]; got != test.want[trigger] {
					t.Errorf("%s: measured %v more seconds, want %v", trigger, got, test.want[trigger])
				}
			}
		})
	}
}
