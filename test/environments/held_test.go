// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// testShadow checks that an environment in shadow mode only plans and records its automatic syncs.
func (s *testCluster) testShadow(t *testing.T) {
	c := s.newFixture(t, "shadowed", shop, workloads("api", "worker"))
	c.mustApply(t, "alice", automatic, "shadow: true")
	record := c.waitForState(t, c.nextRecord(t, "alice", v1alpha1.SyncTypeEnvironment, nil), v1alpha1.SyncStateCompleted)
	if !record.Status.Preview || !record.Status.AutoTriggered || record.Status.WorkloadCount != 2 {
		t.Errorf("record status = %+v", record.Status)
	}
	c.waitForStatus(t, "alice", "Not synced yet")
	if found := s.objectsIn(t, c.target).names(); len(found) > 0 {
		t.Errorf("shadow mode wrote %q", found)
	}
	c.mustSync(t, "alice", all)
	c.waitForStatus(t, "alice", "Synced")
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	known, before := c.recordNames(t, "alice", v1alpha1.SyncTypeEnvironment), s.objectsIn(t, c.target)
	c.setImage(t, "api", "shop/api:2")
	preview := c.waitForState(t, c.nextRecord(t, "alice", v1alpha1.SyncTypeEnvironment, known), v1alpha1.SyncStateCompleted)
	if !preview.Status.Preview || preview.Status.WorkloadCount != 1 {
		t.Errorf("record status = %+v", preview.Status)
	}
	c.waitForStatus(t, "alice", "1 workload changed")
	s.expectUnchanged(t, c.target, before)
}

// testSyncWindows tests an environment whose sync window is closed.
func (s *testCluster) testSyncWindows(t *testing.T) {
	c := s.newFixture(t, "windowed", shop, workloads("api", "worker"))
	later := time.Now().UTC().Add(12 * time.Hour)
	window := fmt.Sprintf("syncWindows: [{name: nightly, kind: Allow, schedule: '0 %d * * *', duration: 1h}]", later.Hour())
	c.mustApply(t, "alice", automatic, window)
	c.waitForStatus(t, "alice", "Held: window nightly opens")
	if found := s.objectsIn(t, c.target).names(); len(found) > 0 {
		t.Errorf("%q were written while the window is closed", found)
	}
	waiting := c.sync(t, "alice", all)
	c.waitForStatus(t, "alice", "Held: window nightly opens")
	if state := c.record(t, waiting).Status.State; state != v1alpha1.SyncStatePending {
		t.Errorf("state of the sync without force = %s", state)
	}
	c.mustSync(t, "alice", `{"spec":{"force":true}}`)
	c.waitForState(t, waiting, v1alpha1.SyncStateSuperseded)
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	before := s.objectsIn(t, c.target)
	c.setImage(t, "api", "shop/api:2")
	c.waitForRevision(t, "alice", 2)
	c.waitForStatus(t, "alice", "Held: window nightly opens")
	s.expectUnchanged(t, c.target, before)
	c.mustApply(t, "alice", automatic)
	c.waitForApplied(t, "alice", 2)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
}

// testRollback rolls an environment back to an earlier revision, and removes the pin.
func (s *testCluster) testRollback(t *testing.T) {
	c := s.newFixture(t, "pinned", shop, workloads("api", "worker"))
	c.mustApply(t, "alice", automatic)
	c.waitForApplied(t, "alice", 1)
	c.setImage(t, "api", "shop/api:2")
	c.waitForApplied(t, "alice", 2)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})

	c.expectRefused(t, s.dave, "environments/alice/rollback", `{"spec":{"revision":99}}`, "Invalid", "spec.revision", `"2", "1"`)
	c.mustRequest(t, s.dave, "environments/alice/rollback", `{"spec":{"revision":1}}`)
	c.waitForApplied(t, "alice", 1)
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	before := s.objectsIn(t, c.target)
	c.setImage(t, "api", "shop/api:3")
	c.waitForRevision(t, "alice", 3)
	c.waitFor(t, "alice", "reports the newer revision", func(e *v1alpha1.Environment) error {
		const message = "The catalog offers revision 3, and spec.pinnedRevision is 1"
		found := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionCatalogUpToDate)
		if found == nil || found.Message != message || e.Status.ChangedWorkloadCount > 0 || !strings.HasSuffix(e.Status.State, ", pinned at r1") {
			return fmt.Errorf("the condition is %+v, the state %q", found, e.Status.State)
		}
		return nil
	})
	s.expectUnchanged(t, c.target, before)

	s.dave.Patch(t, c.team, "envt/alice", `{"spec":{"pinnedRevision":null}}`)
	c.waitForApplied(t, "alice", 3)
	c.expectImages(t, map[string]string{"api": "shop/api:3", "worker": "shop/worker:1"})
}
