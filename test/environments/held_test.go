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

// shadowed has an environment plan and record what it would do by itself.
func (s *stage) shadowed(t *testing.T) {
	c := s.newScene(t, "shadowed", shop, workloads("api", "worker"))
	c.environment(t, "alice", automatic, "shadow: true")
	record := c.rests(t, c.next(t, "alice", v1alpha1.SyncTypeEnvironment, nil), v1alpha1.SyncStateCompleted)
	if !record.Status.Preview || !record.Status.AutoTriggered || record.Status.WorkloadCount != 2 {
		t.Errorf("the record says %+v", record.Status)
	}
	c.says(t, "alice", "Not synced yet")
	if found := s.in(t, c.target).names(); len(found) > 0 {
		t.Errorf("%q have been written", found)
	}
	c.synced(t, "alice", all)
	c.says(t, "alice", "Synced")
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	known, before := c.known(t, "alice", v1alpha1.SyncTypeEnvironment), s.in(t, c.target)
	c.setImage(t, "api", "shop/api:2")
	preview := c.rests(t, c.next(t, "alice", v1alpha1.SyncTypeEnvironment, known), v1alpha1.SyncStateCompleted)
	if !preview.Status.Preview || preview.Status.WorkloadCount != 1 {
		t.Errorf("the record says %+v", preview.Status)
	}
	c.says(t, "alice", "1 workload changed")
	s.unmoved(t, c.target, before)
}

// windowed has an environment whose window is closed.
func (s *stage) windowed(t *testing.T) {
	c := s.newScene(t, "windowed", shop, workloads("api", "worker"))
	later := time.Now().UTC().Add(12 * time.Hour)
	window := fmt.Sprintf("syncWindows: [{name: nightly, kind: Allow, schedule: '0 %d * * *', duration: 1h}]", later.Hour())
	c.environment(t, "alice", automatic, window)
	c.says(t, "alice", "Held: window nightly opens")
	if found := s.in(t, c.target).names(); len(found) > 0 {
		t.Errorf("%q have been written while the window is closed", found)
	}
	waiting := c.sync(t, "alice", all)
	c.says(t, "alice", "Held: window nightly opens")
	if state := c.record(t, waiting).Status.State; state != v1alpha1.SyncStatePending {
		t.Errorf("what was asked for without force is %s", state)
	}
	c.synced(t, "alice", `{"spec":{"force":true}}`)
	c.rests(t, waiting, v1alpha1.SyncStateSuperseded)
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	before := s.in(t, c.target)
	c.setImage(t, "api", "shop/api:2")
	c.offered(t, "alice", 2)
	c.says(t, "alice", "Held: window nightly opens")
	s.unmoved(t, c.target, before)
	c.environment(t, "alice", automatic)
	c.applied(t, "alice", 2)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
}

// pinned has dave go back to an earlier revision, and let go of it.
func (s *stage) pinned(t *testing.T) {
	c := s.newScene(t, "pinned", shop, workloads("api", "worker"))
	c.environment(t, "alice", automatic)
	c.applied(t, "alice", 1)
	c.setImage(t, "api", "shop/api:2")
	c.applied(t, "alice", 2)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})

	c.refused(t, s.dave, "environments/alice/rollback", `{"spec":{"revision":99}}`, "Invalid", "spec.revision", `"2", "1"`)
	c.asks(t, s.dave, "environments/alice/rollback", `{"spec":{"revision":1}}`)
	c.applied(t, "alice", 1)
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	before := s.in(t, c.target)
	c.setImage(t, "api", "shop/api:3")
	c.offered(t, "alice", 3)
	c.becomes(t, "alice", "says that another revision is offered", func(e *v1alpha1.Environment) error {
		const says = "The catalog offers revision 3, and spec.pinnedRevision is 1"
		found := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionCatalogUpToDate)
		if found == nil || found.Message != says || e.Status.ChangedWorkloadCount > 0 || !strings.HasSuffix(e.Status.State, ", pinned at r1") {
			return fmt.Errorf("the condition is %+v, the state %q", found, e.Status.State)
		}
		return nil
	})
	s.unmoved(t, c.target, before)

	s.dave.Run(t, "patch", "envt", "alice", "-n", c.team, "--type=merge", "-p", `{"spec":{"pinnedRevision":null}}`)
	c.applied(t, "alice", 3)
	c.expectImages(t, map[string]string{"api": "shop/api:3", "worker": "shop/worker:1"})
}
