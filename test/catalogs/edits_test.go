// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// withUntracked is a part of a spec that adds a workload and a patch.
const withUntracked = `  workloads: [{kind: Deployment, name: api}, {kind: Deployment, name: worker}, {kind: Deployment, name: untracked}]
  patches:
  - target: {kind: Deployment, name: worker}
    type: JSON6902
    patch: '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "mirror.example.com/shop/worker:1"}]'
`

// testCatalogEdits adds a workload and a patch to a catalog, while the source is unchanged.
func (s *testCluster) testCatalogEdits(t *testing.T) {
	c := s.newFixture(t, "edited")
	c.newCatalog(t, "shop")
	c.edit(t, "shop", withUntracked)

	record := c.waitForRecords(t, "shop", 2)
	status := &record.Status
	if status.State != v1alpha1.SyncStateApplied || status.Actor != "eve" || status.AutoTriggered || len(status.ChangedBy) > 0 {
		t.Errorf("state %s, actor %q, automatic %v, changed by %+v", status.State, status.Actor, status.AutoTriggered, status.ChangedBy)
	}
	if names := []string{"untracked", "worker"}; status.WorkloadCount != 2 || !slices.Equal(status.WorkloadNames, names) {
		t.Errorf("record has %d workloads: %q", status.WorkloadCount, status.WorkloadNames)
	}
	c.expectImages(t, "shop", map[string]string{
		"api": "shop/api:1", "worker": "mirror.example.com/shop/worker:1", "untracked": "shop/untracked:1",
	})
	c.expectColumns(t, map[string]string{"STATE": "2 workloads changed by eve", "CHANGED": "untracked,worker", "BY": "eve"}, "ss", record.Name)
	c.expectColumns(t, map[string]string{"STATE": "Offered with patches", "SOURCE": "edited"}, "cw", "shop.deployment.worker")
	c.expectNextChange(t, "shop", 2)
}

// testEditPermissions has a user edit a catalog who can edit catalogs, but cannot read the source.
func (s *testCluster) testEditPermissions(t *testing.T) {
	c := s.newFixture(t, "refused")
	c.newCatalog(t, "shop")
	for name, edit := range map[string]struct{ catalog, spec string }{
		"a new catalog":     {"other", apiAndWorker},
		"one more workload": {"shop", withUntracked},
	} {
		_, err := s.mallory.Kubectl.Feed(t.Context(), c.manifest(edit.catalog, edit.spec), "apply", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), `"mallory" cannot list deployments.apps in the namespace refused`) ||
			!strings.Contains(err.Error(), "ask for a Role in the namespace refused that allows list on resource") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	c.expectNextChange(t, "shop", 1)
}
