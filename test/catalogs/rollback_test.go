// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// testRollback rolls a catalog back to the first of three revisions, and forward to the current state of the source.
func (s *testCluster) testRollback(t *testing.T) {
	c := s.newFixture(t, "rolled-back")
	c.newCatalog(t, "shop")
	c.setImage(t, s.ann, "api", "shop/api:2")
	c.waitForRecords(t, "shop", 2)
	c.edit(t, "shop", withUntracked)
	c.waitForRecords(t, "shop", 3)

	c.testUnknownRevision(t)
	if status, err := c.request(t.Context(), s.eve, "appcatalogs/shop/rollback", `{"spec": {"revision": 1}}`); err != nil ||
		!strings.HasPrefix(status.Message, "AppCatalog shop goes from revision 3 to what it was at revision 1, and changes of the source wait") {
		t.Fatalf("rollback returned %+v: %v", status, err)
	}
	record := c.waitForRecords(t, "shop", 4)
	expectEdit(t, record, 4, "api", "untracked", "worker")
	c.expectColumns(t, map[string]string{
		"STATE": "3 workloads changed by eve", "CHANGED": "api,untracked,worker", "BY": "eve", "REVISION": "4",
	},
		"ss", record.Name)
	c.expectColumns(t, map[string]string{"REVISION": "4", "STATE": "Offered", "SOURCE": c.source}, "cw", "shop.deployment.worker")
	first := map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"}
	c.expectImages(t, "shop", first)
	c.expectPinned(t)

	// The records of another catalog show that the changes have been processed.
	c.newCatalog(t, "other")
	c.setImage(t, s.ann, "worker", "shop/worker:2")
	c.waitForRecords(t, "other", 2)
	c.setImage(t, s.bob, "api", "shop/api:3")
	c.waitForRecords(t, "other", 3)
	c.waitForRecords(t, "shop", 4)
	c.expectImages(t, "shop", first)
	c.expectPinned(t)

	s.eve.Patch(t, c.team, "cat/shop", `{"spec": {"pinnedRevision": null}}`)
	expectEdit(t, c.waitForRecords(t, "shop", 5), 5, "api", "untracked", "worker")
	c.expectImages(t, "shop", map[string]string{
		"api": "shop/api:3", "worker": "mirror.example.com/shop/worker:1", "untracked": "shop/untracked:1",
	})
	c.expectColumns(t, map[string]string{"REVISION": "5", "STATE": "Offered with patches"}, "cw", "shop.deployment.worker")
	c.expectColumns(t, map[string]string{"REVISION": "5", "WORKLOADS": "3", "READY": "True", "STATE": "Up to date"}, "cat", "shop")
	c.expectNextChange(t, "shop", 5)
}

// testUnknownRevision requests and sets a revision that does not exist.
func (c *fixture) testUnknownRevision(t *testing.T) {
	t.Helper()
	_, request := c.request(t.Context(), c.eve, "appcatalogs/shop/rollback", `{"spec": {"revision": 99}}`)
	_, edit := c.eve.Kubectl.Run(t.Context(), "patch", "cat", "shop", "-n", c.team, "--type=merge", "-p", `{"spec": {"pinnedRevision": 99}}`)
	for field, err := range map[string]error{"spec.revision": request, "spec.pinnedRevision": edit} {
		if err == nil || !strings.Contains(err.Error(), field+`: Unsupported value: "99": supported values: "3", "2", "1"`) {
			t.Errorf("%s: %v", field, err)
		}
	}
	c.expectColumns(t, map[string]string{"REVISION": "3", "STATE": "Up to date"}, "cat", "shop")
}

// expectPinned expects the catalog shop to stay at its first revision.
func (c *fixture) expectPinned(t *testing.T) {
	t.Helper()
	c.expectColumns(t, map[string]string{"REVISION": "4", "WORKLOADS": "2", "READY": "True", "STATE": "Pinned at what revision 1 was"}, "cat",
		"shop")
	out := c.eve.Field(t, c.team, "cat/shop", `{.status.conditions[?(@.type=="Paused")].reason}`)
	if out != v1alpha1.ReasonPinned {
		t.Errorf("reason of Paused = %q", out)
	}
}

// expectEdit expects a record of an edit by eve.
func expectEdit(t *testing.T, record *v1alpha1.SyncStatus, revision int64, workloads ...string) {
	t.Helper()
	status := &record.Status
	if status.State != v1alpha1.SyncStateApplied || status.Actor != "eve" || status.AutoTriggered || status.Revision != revision {
		t.Errorf("%s: state %s, actor %q, automatic %v, revision %d", record.Name, status.State, status.Actor, status.AutoTriggered,
			status.Revision)
	}
	if int(status.WorkloadCount) != len(workloads) || !slices.Equal(status.WorkloadNames, workloads) {
		t.Errorf("%s: %d workloads %q, want %q", record.Name, status.WorkloadCount, status.WorkloadNames, workloads)
	}
}
