// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/pkg/registry"
)

// offeredAt has the catalog have made its revisions 4 and 5 two hours and one before noon.
func offeredAt(t *testing.T, storage *registry.Storage) {
	t.Helper()
	if err := editCatalog(in(t), storage, "appcatalogs/status", func(c *configbutler.AppCatalog) {
		c.Status.History = []configbutler.CatalogRevision{
			{Revision: 5, Time: metav1.NewTime(noon.Add(-time.Hour)), SyncStatus: "shop-newer"},
			{Revision: 4, Time: metav1.NewTime(noon.Add(-2 * time.Hour)), SyncStatus: "shop-older"},
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// How long a decision took is counted once, from the times in the status.
func TestDecisionsAreMeasured(t *testing.T) {
	const hour = 3600
	older := func(e envt) { e.Status.AppliedRevision, e.Status.AppliedCatalogSync = 3, "shop-oldest" }
	sync := func(change func(*configbutler.SyncRequestSpec)) func(*testing.T, *registry.Storage) {
		return func(t *testing.T, storage *registry.Storage) {
			_, _ = ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(change), metav1.DryRunAll)
			for range 2 { // To ask again decides nothing.
				_, _ = ask(as(t, "jane"), storage, "environments/sync", "alice", requestOf(change))
			}
		}
	}
	dismiss := func(t *testing.T, storage *registry.Storage) {
		for _, dryRun := range [][]string{{metav1.DryRunAll}, nil, nil} {
			if _, err := dismissPrompts(as(t, "jane"), storage, dryRun...); err != nil {
				t.Error(err)
			}
		}
	}
	for name, test := range map[string]struct {
		change func(envt)
		decide func(*testing.T, *registry.Storage)
		// want are the seconds that are added for each of the labels, about dependencies the decisions.
		want map[string]float64
	}{
		"everything is taken": {asIs, sync(everything), map[string]float64{"catalog taken": hour, "dependencies taken": 1}},
		"workloads are taken": {
			asIs, sync(func(s *configbutler.SyncRequestSpec) { s.Action = configbutler.SyncActionCatalog }),
			map[string]float64{"catalog taken": hour},
		},
		"what they refer to is taken": {
			asIs, sync(func(s *configbutler.SyncRequestSpec) { s.Action = configbutler.SyncActionCluster }),
			map[string]float64{"dependencies taken": 1},
		},
		"one workload is": {asIs, sync(only("web")), nil},
		"both are dismissed": {asIs, dismiss, map[string]float64{
			"catalog dismissed": hour, "dependencies dismissed": 1, "dismissals catalog": 1, "dismissals dependencies": 1,
		}},
		"two revisions are taken": {older, sync(everything), map[string]float64{"catalog taken": 2 * hour, "dependencies taken": 1}},
		"an earlier offer was dismissed": {
			func(e envt) { older(e); e.Status.DismissedCatalogSync = "shop-older" }, sync(everything),
			map[string]float64{"catalog taken": hour, "dependencies taken": 1},
		},
		"nothing is offered": {upToDate, sync(everything), map[string]float64{"dependencies taken": 1}},
		"a pin keeps it away": {
			func(e envt) { e.Spec.PinnedRevision = new(int64(4)) }, sync(everything), map[string]float64{"dependencies taken": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t, impatient) // Nothing takes requests up here.
			newEnvironment(t, storage, test.change)
			offeredAt(t, storage)
			prompts(t, storage)
			before := decisions(t)
			test.decide(t, storage)
			after := decisions(t)
			for key, value := range after {
				if got := value - before[key]; got != test.want[key] {
					t.Errorf("%s: %v more, want %v", key, got, test.want[key])
				}
			}
		})
	}
}

// decisions are the seconds that decisions about catalogs have taken, how many there were about dependencies, and how many
// dismissals, by labels.
func decisions(t *testing.T) map[string]float64 {
	t.Helper()
	out, sums, values := map[string]float64{}, metrictest.Sums(t), metrictest.Values(t)
	for _, about := range []string{"catalog", "dependencies"} {
		out["dismissals "+about] = values["dismissals_total "+about]
		for _, decision := range []string{"taken", "dismissed"} {
			out[about+" "+decision] = sums["environment_decision_duration_seconds "+about+" "+decision]
			if about == "dependencies" {
				out[about+" "+decision] = values["environment_decision_duration_seconds "+about+" "+decision]
			}
		}
	}
	return out
}
