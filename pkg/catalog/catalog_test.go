// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
)

// runningFixture returns a fixture whose catalog shop has its first revision.
func runningFixture(t *testing.T) *fixture {
	t.Helper()
	s := newFixture(t, appCatalog("shop", "api", "worker"))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.stepWindow() // The batch of the initial lists of the watches ends.
	s.expectRecords(firstRecord)
	return s
}

func annotated(key, value string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) { object.SetAnnotations(map[string]string{key: value}) }
}

func with(value any, path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(object.Object, value, path...)
	}
}

func TestBatchIsOneRecord(t *testing.T) {
	s := runningFixture(t)
	for _, image := range []string{"shop/api:2", "shop/api:3", "shop/api:4"} {
		s.put("api", image)
	}
	s.put("worker", "shop/worker:2")
	s.put("untracked", "shop/untracked:1")
	s.put("api", "shop/api:4", with(int64(9), "spec", "replicas"))
	s.put("api", "shop/api:4", with(int64(9), "status", "readyReplicas"))
	s.put("api", "shop/api:4", annotated("deployment.kubernetes.io/revision", "7"))
	s.waitForEvents(4)
	s.waitForRevision("shop", 2)
	s.stepWindow()
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api Changed worker (2)")
	want := map[string]string{"api": "shop/api:4", "worker": "shop/worker:2"}
	if got := s.images("shop"); !maps.Equal(got, want) {
		t.Errorf("offered images = %v, want %v", got, want)
	}
	status := s.catalog("shop").Status
	if status.LatestSync == "" || len(status.History) != 2 || status.History[0].SyncStatus != status.LatestSync {
		t.Errorf("status = %+v", status)
	}
	if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("conditions = %+v", status.Conditions)
	}
}

func TestIgnoredChangesAreNotRecorded(t *testing.T) {
	s := runningFixture(t)
	s.put("api", "shop/api:1", with(int64(9), "spec", "replicas"))
	s.put("api", "shop/api:1", with(int64(9), "status", "readyReplicas"))
	s.put("worker", "shop/worker:1", annotated("deployment.kubernetes.io/revision", "7"))
	s.stepWindow()
	s.stop()
	s.start(0) // The watches list again.
	s.waitForWatches()
	s.stepWindow()
	s.expectRecords(firstRecord)
	if revision := s.catalog("shop").Status.Revision; revision != 1 {
		t.Errorf("revision = %d", revision)
	}
}

// firstRecord is the record of the first revision of runningFixture.
const firstRecord = "shop 1 Applied by eve Added api Added worker (2)"

// TestCatalogsThatOfferNothing checks that a catalog that selects nothing of its source reports it, although it has no revision.
func TestCatalogsThatOfferNothing(t *testing.T) {
	named, selecting := appCatalog("named", "apii"), appCatalog("selecting")
	selecting.Spec.WorkloadSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}}
	s := newFixture(t, named, selecting)
	s.start(0)
	for name, want := range map[string]string{
		"named":     "Not in the source yet: Deployment apii",
		"selecting": "spec.workloadSelector matches no workload of the source yet",
	} {
		s.eventually("the conditions of "+name, func() error {
			status := s.catalog(name).Status
			missing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionWorkloadsMissing)
			ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
			if missing == nil || missing.Reason != v1alpha1.ReasonNeverSeen || missing.Message != want ||
				ready.Status != metav1.ConditionTrue || !strings.Contains(ready.Message, "offers no workload") {
				return fmt.Errorf("%+v", status.Conditions)
			}
			return nil
		})
	}
}

func TestDeletedWorkloadsBecomeMissing(t *testing.T) {
	s := runningFixture(t)
	s.remove("worker")
	s.waitForRevision("shop", 2)
	s.expectRecords(firstRecord, "shop 2 AutoApplied Removed worker (1)")
	catalog := s.catalog("shop")
	if entries := catalog.Status.Workloads; len(entries) != 2 || entries[0].Missing || !entries[1].Missing {
		t.Errorf("workloads = %+v", entries)
	}
	missing := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionWorkloadsMissing)
	if missing == nil || missing.Reason != v1alpha1.ReasonDeletedInSource || !strings.Contains(missing.Message, "Deployment worker") {
		t.Errorf("condition = %+v", missing)
	}
	s.put("worker", "shop/worker:1")
	s.waitForRevision("shop", 3)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[:1] })
	s.waitForRevision("shop", 4)
	s.stepWindow()
	s.expectRecords(firstRecord, "shop 2 AutoApplied Removed worker (1)", "shop 3 AutoApplied Added worker (1)",
		"shop 4 Applied by eve Removed worker (1)")
	if got := s.images("shop"); len(got) != 1 {
		t.Errorf("offered images = %v", got)
	}
}

func TestEditsHaveAnActor(t *testing.T) {
	s := runningFixture(t)
	s.put("db", "shop/db:1")
	s.put("api", "shop/api:2")
	s.waitForEvents(1)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) {
		catalog.Spec.Workloads = append(catalog.Spec.Workloads, reference{Kind: v1alpha1.WorkloadDeployment, Name: "db"})
		catalog.Spec.Patches = []v1alpha1.Patch{{
			Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: "worker"}, Type: v1alpha1.PatchStrategicMerge,
			Patch: `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"shop/worker:patched"}]}}}}`,
		}}
	})
	s.waitForRevision("shop", 3)
	s.stepWindow()
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api (1)", "shop 3 Applied by adam Added db Changed worker (2)")
	want := map[string]string{"api": "shop/api:2", "db": "shop/db:1", "worker": "shop/worker:patched"}
	if got := s.images("shop"); !maps.Equal(got, want) {
		t.Errorf("offered images = %v, want %v", got, want)
	}
	if pending := s.catalog("shop").Status.PendingEdits; len(pending) > 0 {
		t.Errorf("pending edits = %+v", pending)
	}
}

func TestEditsThatChangeNothingAreNotRecorded(t *testing.T) {
	s := runningFixture(t)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.HistoryLimit = new(int32(3)) })
	s.waitForRevision("shop", 1)
	s.stepWindow()
	s.expectRecords(firstRecord)
}

func TestChangesMadeWhileStoppedAreOneRecord(t *testing.T) {
	s := runningFixture(t)
	s.stop()
	s.put("api", "shop/api:2")
	s.remove("worker")
	s.start(0)
	s.waitForRevision("shop", 2)
	s.stepWindow()
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api Removed worker (2)")
}

func TestEachCatalogOfANamespaceHasARecord(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api", "worker"), appCatalog("work", "worker"), appCatalog("gone", "api"))
	s.start(0)
	for _, name := range []string{"shop", "work", "gone"} {
		s.waitForRevision(name, 1)
	}
	s.waitForWatches()
	s.stepWindow()
	s.put("api", "shop/api:2")
	s.put("worker", "shop/worker:2")
	s.waitForEvents(2)
	s.deleteCatalog("gone")
	s.waitForRevision("shop", 2)
	s.waitForRevision("work", 2)
	s.stepWindow()
	s.expectRecords("gone 1 Applied by eve Added api (1)", firstRecord, "work 1 Applied by eve Added worker (1)",
		"shop 2 AutoApplied Changed api Changed worker (2)", "work 2 AutoApplied Changed worker (1)")
}

func TestPreviewsChangeNothing(t *testing.T) {
	s := runningFixture(t)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = true })
	s.waitForRevision("shop", 1)
	s.put("api", "shop/api:2")
	s.remove("worker")
	s.waitForEvents(2)
	s.eventually("a preview", func() error {
		if n := len(s.recordLines()); n != 2 {
			return fmt.Errorf("%d records", n)
		}
		return nil
	})
	s.stepWindow()
	s.expectRecords(firstRecord, "shop 0 AutoApplied preview Changed api Removed worker (2)")
	want := map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"}
	if got := s.images("shop"); !maps.Equal(got, want) {
		t.Errorf("offered images = %v, want %v", got, want)
	}
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = false })
	s.waitForRevision("shop", 2)
	s.expectRecords(firstRecord, "shop 0 AutoApplied preview Changed api Removed worker (2)",
		"shop 2 Applied by eve Changed api Removed worker (2)")
}

func TestPausesEndWithOneRecord(t *testing.T) {
	s := runningFixture(t)
	until := s.pause("shop", "eve")
	s.put("api", "shop/api:2")
	s.stepWindow()
	s.put("worker", "shop/worker:2")
	s.stepWindow()
	s.expectRecords(firstRecord)
	if !meta.IsStatusConditionTrue(s.catalog("shop").Status.Conditions, v1alpha1.ConditionPaused) {
		t.Errorf("conditions = %+v", s.catalog("shop").Status.Conditions)
	}
	s.pauseEnds(until)
	s.waitForRevision("shop", 2)
	s.stepWindow()
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api Changed worker (2)")
}

// pause pauses a catalog until long after the test would end. pauseEnds steps the clock to the end of the pause.
func (s *fixture) pause(name, actor string) (until metav1.Time) {
	s.Helper()
	until = metav1.NewTime(s.clock.Now().Add(2 * time.Hour)).Rfc3339Copy()
	s.edit(name, actor, func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PauseUntil = &until })
	s.eventually("the catalog is paused", func() error {
		if catalog := s.catalog(name); specChanged(catalog) {
			return fmt.Errorf("%+v", catalog.Status)
		}
		return nil
	})
	return until
}

// pauseEnds expects that a pause has not ended yet, and steps the clock to its end.
func (s *fixture) pauseEnds(until metav1.Time) {
	s.Helper()
	if now := s.clock.Now(); !now.Before(until.Time) {
		s.Errorf("it is %s, after the end of the pause", now)
	}
	s.clock.SetTime(until.Time)
}

func TestChangesWaitWhileACatalogIsPinned(t *testing.T) {
	s := runningFixture(t)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PinnedRevision = new(int64(1)) })
	s.waitForRevision("shop", 1)
	s.put("api", "shop/api:2")
	s.stepWindow()
	s.expectRecords(firstRecord)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PinnedRevision = nil })
	s.waitForRevision("shop", 2)
	s.expectRecords(firstRecord, "shop 2 Applied by adam Changed api (1)")
}

// recreate replaces a catalog by another one with the same name, in a single update event. The source of the new one does not exist.
func (s *fixture) recreate(name string) {
	s.Helper()
	s.replace(name, func(catalog *v1alpha1.AppCatalog) {
		version := catalog.ResourceVersion
		*catalog = *withoutSource(appCatalog(name, "api"))
		catalog.UID, catalog.ResourceVersion = "another", version
	})
}

func TestRecreatedCatalogs(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api"), appCatalog("work", "worker"))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForRevision("work", 1)
	s.waitForWatches()
	s.stepWindow()
	s.recreate("shop")
	s.eventually("the new catalog is reconciled", func() error {
		if conditions := s.catalog("shop").Status.Conditions; len(conditions) == 0 {
			return errors.New("catalog has no conditions")
		}
		return nil
	})
	before := metrictest.Values(t)
	s.put("api", "shop/api:2")
	s.put("worker", "shop/worker:2")
	s.waitForRevision("work", 2)
	expectGrowth(t, before, map[string]float64{"catalog_events_mapped_total": 1, "catalog_events_ignored_total not_followed": 1})
}
