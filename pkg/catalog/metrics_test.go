// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
)

// expectGrowth checks the growth of counters since before.
func expectGrowth(t *testing.T, before map[string]float64, want map[string]float64) {
	t.Helper()
	after := metrictest.Values(t)
	for name, by := range want {
		if got := after[name] - before[name]; got != by {
			t.Errorf("%s grew by %v, want %v", name, got, by)
		}
	}
}

// waitForGauges waits until gauges have values.
func (s *fixture) waitForGauges(t *testing.T, want map[string]float64) {
	t.Helper()
	s.eventually("the gauges", func() error {
		now := metrictest.Values(t)
		for name, value := range want {
			if got, exists := now[name]; got != value || !exists {
				return fmt.Errorf("%s = %v, want %v", name, got, value)
			}
		}
		return nil
	})
}

func TestEventsAndRecordsAreCounted(t *testing.T) {
	s := runningFixture(t)
	before := metrictest.Values(t)
	s.put("api", "shop/api:2")
	s.put("api", "shop/api:3")
	s.put("worker", "shop/worker:2")
	s.put("api", "shop/api:3", with(int64(9), "status", "readyReplicas"))
	s.put("untracked", "shop/untracked:1")
	s.put("untracked", "shop/untracked:2")
	s.waitForEvents(3)
	s.waitForRevision("shop", 2)
	s.stepWindow()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[:1] })
	s.waitForRevision("shop", 3)
	// What a record counts is counted after it is written.
	s.eventually("the duration of the edit", func() error {
		if metrictest.Values(t)["catalog_edit_duration_seconds"] == before["catalog_edit_duration_seconds"] {
			return errors.New("not counted")
		}
		return nil
	})
	expectGrowth(t, before, map[string]float64{
		"catalog_events_received_total deployments": 6, "catalog_events_mapped_total": 3,
		"catalog_events_ignored_total unchanged": 1, "catalog_events_ignored_total not_followed": 2,
		"catalog_intake_events_deduplicated_total": 1, "catalog_intake_batches_closed_total": 1,
		"catalog_records_total AutoApplied": 1, "catalog_records_total Applied": 1,
		"catalog_record_duration_seconds": 1, "catalog_edit_duration_seconds": 1,
	})
}

func TestFailuresAreCounted(t *testing.T) {
	before := metrictest.Values(t)
	s := failingFixture(t)
	s.waitForState(v1alpha1.SyncStateManualIntervention)
	s.waitForGauges(t, map[string]float64{"catalog_records_awaiting": 1, "catalogs False": 1, "catalogs True": 0})
	expectGrowth(t, before, map[string]float64{
		"catalog_failures_total PatchFailed": 5, "catalog_records_total Failed": 5, "catalog_records_total Retrying": 4,
		"catalog_records_total ManualIntervention": 1,
	})
	s.deleteCatalog("shop") // Its records cannot be retried any more.
	s.waitForGauges(t, map[string]float64{"catalog_records_awaiting": 0, "catalogs False": 0})
}

// TestConflictsAreNoFailures changes the spec of a catalog during a reconcile, which is then repeated. A failure of another catalog of the
// namespace is counted.
func TestConflictsAreNoFailures(t *testing.T) {
	for name, test := range map[string]struct {
		failing string
		want    float64
	}{"alone": {"", 0}, "beside a failure": {"work", 1}} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, appCatalog("shop", "api"), appCatalog("work", "api"))
			early, late := int32(3), int32(1)
			s.api.Client.PrependReactor("get", "appcatalogs", func(action clienttesting.Action) (bool, runtime.Object, error) {
				switch of := action.(clienttesting.GetAction).GetName(); {
				case of == "shop" && atomic.AddInt32(&early, -1) >= 0:
					changed := s.catalog(of).DeepCopy()
					changed.Generation++
					return true, changed, nil
				case of == test.failing && atomic.AddInt32(&late, -1) >= 0:
					return true, nil, apierrors.NewInternalError(errors.New("the store is unavailable"))
				}
				return false, nil, nil
			})
			before := metrictest.Values(t)
			s.start(0)
			s.waitForRevision("shop", 1)
			s.waitForRevision("work", 1)
			expectGrowth(t, before, map[string]float64{"catalog_failures_total Transient": test.want})
		})
	}
}

func TestGauges(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api", "worker"), appCatalog("work", "worker"), withoutSource(appCatalog("lost", "api")))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForRevision("work", 1)
	s.remove("worker")
	s.waitForRevision("shop", 2)
	s.waitForRevision("work", 2)
	s.waitForGauges(t, map[string]float64{
		"catalogs True": 2, "catalogs False": 1, "catalogs Unknown": 0, "catalog_workloads_missing": 2,
		"catalog_sources": 2, "catalog_sources_unreachable": 1, "catalog_records_awaiting": 0,
	})
	s.stop() // The next leader reports the gauges.
	s.waitForGauges(t, map[string]float64{
		"catalogs True": 0, "catalogs False": 0, "catalog_workloads_missing": 0, "catalog_sources": 0, "catalog_sources_unreachable": 0,
	})
}
