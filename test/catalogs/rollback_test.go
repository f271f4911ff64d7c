// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// rolledBack has eve go back to the first of three revisions, and forward to what production has become meanwhile.
func (s *stage) rolledBack(t *testing.T) {
	c := s.newScene(t, "rolled-back")
	c.newCatalog(t, "shop")
	c.setImage(t, s.ann, "api", "shop/api:2")
	c.recorded(t, "shop", 2)
	c.edit(t, "shop", withUntracked)
	c.recorded(t, "shop", 3)

	c.unknownRevision(t)
	if answer, err := c.ask(t.Context(), s.eve, "appcatalogs/shop/rollback", `{"spec": {"revision": 1}}`); err != nil ||
		!strings.HasPrefix(answer.Message, "AppCatalog shop goes from revision 3 to what it was at revision 1, and changes of the source wait") {
		t.Fatalf("answered with %+v: %v", answer, err)
	}
	record := c.recorded(t, "shop", 4)
	byEve(t, record, 4, "api", "untracked", "worker")
	c.reads(t, map[string]string{"STATE": "3 workloads changed by eve", "CHANGED": "api,untracked,worker", "BY": "eve", "REVISION": "4"},
		"ss", record.Name)
	c.reads(t, map[string]string{"REVISION": "4", "STATE": "Offered", "SOURCE": c.source}, "cw", "shop.deployment.worker")
	first := map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"}
	c.offers(t, "shop", first)
	c.pinned(t)

	// Another catalog shows when the changes have been recorded.
	c.newCatalog(t, "other")
	c.setImage(t, s.ann, "worker", "shop/worker:2")
	c.recorded(t, "other", 2)
	c.setImage(t, s.bob, "api", "shop/api:3")
	c.recorded(t, "other", 3)
	c.recorded(t, "shop", 4)
	c.offers(t, "shop", first)
	c.pinned(t)

	s.eve.Run(t, "patch", "cat", "shop", "-n", c.team, "--type=merge", "-p", `{"spec": {"pinnedRevision": null}}`)
	byEve(t, c.recorded(t, "shop", 5), 5, "api", "untracked", "worker")
	c.offers(t, "shop", map[string]string{
		"api": "shop/api:3", "worker": "mirror.example.com/shop/worker:1", "untracked": "shop/untracked:1",
	})
	c.reads(t, map[string]string{"REVISION": "5", "STATE": "Offered with patches"}, "cw", "shop.deployment.worker")
	c.reads(t, map[string]string{"REVISION": "5", "WORKLOADS": "3", "READY": "True", "STATE": "Up to date"}, "cat", "shop")
	c.onlyTheNext(t, "shop", 5)
}

// unknownRevision asks for a revision that there has never been, in both ways.
func (c *scene) unknownRevision(t *testing.T) {
	t.Helper()
	_, request := c.ask(t.Context(), c.eve, "appcatalogs/shop/rollback", `{"spec": {"revision": 99}}`)
	_, edit := c.eve.Kubectl.Run(t.Context(), "patch", "cat", "shop", "-n", c.team, "--type=merge", "-p", `{"spec": {"pinnedRevision": 99}}`)
	for field, err := range map[string]error{"spec.revision": request, "spec.pinnedRevision": edit} {
		if err == nil || !strings.Contains(err.Error(), field+`: Unsupported value: "99": supported values: "3", "2", "1"`) {
			t.Errorf("%s: %v", field, err)
		}
	}
	c.reads(t, map[string]string{"REVISION": "3", "STATE": "Up to date"}, "cat", "shop")
}

// pinned expects the catalog shop to say that it stays at its first revision.
func (c *scene) pinned(t *testing.T) {
	t.Helper()
	c.reads(t, map[string]string{"REVISION": "4", "WORKLOADS": "2", "READY": "True", "STATE": "Pinned at what revision 1 was"}, "cat", "shop")
	out := c.eve.Run(t, "get", "cat", "shop", "-n", c.team, "-o", `jsonpath={.status.conditions[?(@.type=="Paused")].reason}`)
	if out != v1alpha1.ReasonPinned {
		t.Errorf("paused because of %q", out)
	}
}

// byEve expects a record of what eve has made of a catalog.
func byEve(t *testing.T, record *v1alpha1.SyncStatus, revision int64, workloads ...string) {
	t.Helper()
	status := &record.Status
	if status.State != v1alpha1.SyncStateApplied || status.Actor != "eve" || status.AutoTriggered || status.Revision != revision {
		t.Errorf("%s is %s by %q, automatic %v, of revision %d", record.Name, status.State, status.Actor, status.AutoTriggered, status.Revision)
	}
	if int(status.WorkloadCount) != len(workloads) || !slices.Equal(status.WorkloadNames, workloads) {
		t.Errorf("%s tells of %d workloads: %q, want %q", record.Name, status.WorkloadCount, status.WorkloadNames, workloads)
	}
}
