// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// pausedUntil returns a spec with a pause.
func pausedUntil(end time.Time) string {
	return fmt.Sprintf("%s  pauseUntil: %s\n", apiAndWorker, end.UTC().Format(time.RFC3339))
}

// testPause changes the source during a pause. The records of another catalog show that the changes have been processed.
func (s *testCluster) testPause(t *testing.T) {
	c := s.newFixture(t, "paused")
	c.newCatalog(t, "shop")
	c.newCatalog(t, "other")
	end := time.Now().Add(time.Hour)
	c.edit(t, "shop", pausedUntil(end))
	c.setImage(t, s.ann, "api", "shop/api:2")
	c.waitForRecords(t, "other", 2)
	c.setImage(t, s.ann, "worker", "shop/worker:2")
	c.waitForRecords(t, "other", 3)
	c.waitForRecords(t, "shop", 1)
	c.expectColumns(t, map[string]string{"REVISION": "1", "READY": "True", "STATE": "Paused until " + end.UTC().Format(time.RFC3339)}, "cat",
		"shop")
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	// The pause ends by itself.
	c.edit(t, "shop", pausedUntil(time.Now().Add(3*time.Second)))
	expectAutomatic(t, c.waitForRecords(t, "shop", 2), "api", "worker")
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:2", "worker": "shop/worker:2"})
	c.expectNextChange(t, "shop", 2)
}

// testPreview records changes without applying them, until the catalog is edited.
func (s *testCluster) testPreview(t *testing.T) {
	c := s.newFixture(t, "previewed")
	c.newCatalog(t, "shop")
	c.edit(t, "shop", apiAndWorker+"  previewOnly: true\n")
	c.setImage(t, s.ann, "api", "shop/api:2")
	record := c.waitForRecords(t, "shop", 2)
	expectAutomatic(t, record, "api")
	if !record.Status.Preview || record.Status.Revision != 0 {
		t.Errorf("preview = %v, revision = %d", record.Status.Preview, record.Status.Revision)
	}
	c.expectColumns(t, map[string]string{"STATE": "Preview: 1 workload changed", "CHANGED": "api", "BY": "ann"}, "ss", record.Name)
	c.expectColumns(t, map[string]string{"REVISION": "1", "STATE": "Changes are only recorded"}, "cat", "shop")
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	c.edit(t, "shop", apiAndWorker+"  previewOnly: false\n")
	record = c.waitForRecords(t, "shop", 3)
	if record.Status.State != v1alpha1.SyncStateApplied || record.Status.Actor != "eve" || record.Status.Preview {
		t.Errorf("state %s, actor %q, preview %v", record.Status.State, record.Status.Actor, record.Status.Preview)
	}
	c.expectColumns(t, map[string]string{"REVISION": "2", "STATE": "Up to date"}, "cat", "shop")
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	c.expectNextChange(t, "shop", 3)
}
