// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// longWindow does not end while a test makes its changes, which take 40 s on a busy machine.
const longWindow = 3 * time.Minute

// testBatchWindow has two users change the source within seconds. Writes of controllers must not be recorded.
func (s *testCluster) testBatchWindow(t *testing.T) {
	c := s.newFixture(t, "window")
	s.setBatchWindow(t, longWindow)
	c.newCatalog(t, "shop")

	for i := range 20 {
		c.setImage(t, s.ann, "api", fmt.Sprintf("shop/api:%d", i+2))
	}
	c.setImage(t, s.bob, "worker", "shop/worker:2")
	c.setImage(t, s.bob, "untracked", "shop/untracked:2")
	c.change(t, s.bob, "api", `{"spec":{"replicas":3}}`, "scale")
	c.change(t, s.bob, "api", `{"status":{"observedGeneration":1}}`, "status")
	c.change(t, s.bob, "api", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"99"}}}`)

	record := c.waitForRecords(t, "shop", 2)
	status := &record.Status
	expectAutomatic(t, record, "api", "worker")
	if status.Revision != 2 {
		t.Errorf("revision %d", status.Revision)
	}
	want := []v1alpha1.SourceAuthor{
		{Username: "ann", Signal: v1alpha1.SignalAudit, Workloads: 1}, {Username: "bob", Signal: v1alpha1.SignalAudit, Workloads: 1},
	}
	if !slices.Equal(status.ChangedBy, want) {
		t.Errorf("changedBy = %+v, want %+v", status.ChangedBy, want)
	}
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:21", "worker": "shop/worker:2"})
	c.expectColumns(t, map[string]string{"STATE": "2 workloads changed", "CHANGED": "api,worker", "BY": "ann,bob"}, "ss", record.Name)
	c.expectColumns(t, map[string]string{"REVISION": "2", "WORKLOADS": "2", "STATE": "Up to date"}, "cat", "shop")

	s.setBatchWindow(t, shortWindow)
	c.expectNextChange(t, "shop", 2)
}
