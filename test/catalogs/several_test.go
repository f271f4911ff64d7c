// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testSeveralCatalogs tests two catalogs of one source namespace, one of them with a subset of the workloads.
func (s *testCluster) testSeveralCatalogs(t *testing.T) {
	c := s.newFixture(t, "together")
	c.newCatalog(t, "shop")
	c.edit(t, "back-office", "  workloads: [{kind: Deployment, name: worker}]\n")
	c.waitForRecords(t, "back-office", 1)

	c.setImage(t, s.ann, "worker", "shop/worker:2")
	expectAutomatic(t, c.waitForRecords(t, "shop", 2), "worker")
	expectAutomatic(t, c.waitForRecords(t, "back-office", 2), "worker")
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:2"})
	c.expectImages(t, "back-office", map[string]string{"worker": "shop/worker:2"})
	c.expectNextChange(t, "shop", 2)
	c.waitForRecords(t, "back-office", 2)
}

// deletionWindow is long enough for a catalog to be deleted before it ends.
const deletionWindow = 5 * time.Second

// testDeletedCatalog deletes a catalog with changes that are not recorded yet.
func (s *testCluster) testDeletedCatalog(t *testing.T) {
	c := s.newFixture(t, "deleted")
	s.setBatchWindow(t, deletionWindow)
	defer s.setBatchWindow(t, shortWindow)
	c.newCatalog(t, "shop")
	c.newCatalog(t, "doomed")
	c.setImage(t, s.ann, "api", "shop/api:2")
	s.eve.Delete(t, c.team, "cat/doomed")
	expectAutomatic(t, c.waitForRecords(t, "shop", 2), "api")
	mirrortest.Eventually(t, "the workloads of the catalog are deleted", func(ctx context.Context) error {
		workloads, err := c.workloads(ctx, "doomed")
		if err == nil && len(workloads) > 0 {
			err = errors.New("workloads still exist")
		}
		return err
	})
	if records, err := c.records(t.Context(), "doomed"); err != nil || len(records) == 0 {
		t.Errorf("records of the catalog were deleted: %v", err)
	}
	c.expectNextChange(t, "shop", 2)
	s.Delete(t, "", "namespace/"+c.team)
}
