// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	automatic = "autoSync: true"
	// stopped suspends automatic syncs.
	stopped = "suspend: {environmentAutoSync: true, dependencyAutoSync: true}"
)

// testAutoSync tests an environment that syncs automatically, also while automatic syncs are suspended.
func (s *testCluster) testAutoSync(t *testing.T) {
	c := s.newFixture(t, "automated", shop, workloads("api", "worker"))
	defer s.applySyncPolicy(t)
	c.mustApply(t, "alice", automatic)
	c.waitForStatus(t, "alice", "Synced")
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	if by := c.get(t, "alice").Status.AutomatedBy; by == nil || by.Username != "dave" {
		t.Errorf("status.automatedBy = %+v, want dave", by)
	}
	c.testAutoSyncSuspended(t)
	c.testMissingDependency(t)
}

// testAutoSyncSuspended checks that suspended automatic syncs only offer changes, and that they are applied after the
// suspension, the catalog first.
func (c *fixture) testAutoSyncSuspended(t *testing.T) {
	t.Helper()
	runs, refreshes := c.recordNames(t, "alice", v1alpha1.SyncTypeEnvironment), c.recordNames(t, "alice", v1alpha1.SyncTypeDependency)
	before := c.objectsIn(t, c.target)
	c.applySyncPolicy(t, stopped)
	c.setImage(t, "api", "shop/api:2")
	c.applyToSource(t, fmt.Sprintf(needs, 2))
	c.waitForPrompt(t, "alice", 1, "[{ConfigMap 1} {Secret 2}]")
	c.expectUnchanged(t, c.target, before)

	c.applySyncPolicy(t)
	c.waitForStatus(t, "alice", "Synced")
	first := c.waitForState(t, c.nextRecord(t, "alice", v1alpha1.SyncTypeEnvironment, runs), v1alpha1.SyncStateCompleted)
	if first.Status.Actor != "" || !first.Status.AutoTriggered {
		t.Errorf("%s is by %q, automatic %v", first.Name, first.Status.Actor, first.Status.AutoTriggered)
	}
	c.checkOrder(t, first, c.record(t, c.nextRecord(t, "alice", v1alpha1.SyncTypeDependency, refreshes)))
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	if page := text(c.object(t, c.target, "ConfigMap pages"), "data", "index.html"); page != "hello-2" {
		t.Errorf("the ConfigMap has %q", page)
	}
}

// checkOrder expects the record of a dependency change to be resolved by the catalog sync, which includes it. A sync of its own
// must not overlap with the catalog sync.
func (c *fixture) checkOrder(t *testing.T, catalog, dependencies *v1alpha1.SyncStatus) {
	t.Helper()
	status := &dependencies.Status
	if status.State != v1alpha1.SyncStateCompleted && status.State != v1alpha1.SyncStateSuperseded {
		t.Errorf("state of %s is %s: %s", dependencies.Name, status.State, c.describe(t.Context()))
	}
	if status.ResolvedAt.Before(catalog.Status.StartedAt) || status.StartedAt != nil && status.StartedAt.Before(catalog.Status.ResolvedAt) {
		t.Errorf("the catalog was synced from %v to %v, the dependencies from %v to %v", catalog.Status.StartedAt, catalog.Status.ResolvedAt,
			status.StartedAt, status.ResolvedAt)
	}
}

// waitForPrompt waits until a suspended automatic environment offers the changes.
func (c *fixture) waitForPrompt(t *testing.T, environment string, workloads int32, dependencies string) {
	t.Helper()
	c.waitFor(t, environment, "offers what has changed", func(e *v1alpha1.Environment) error {
		if got := fmt.Sprint(e.Status.ChangedDependencies); e.Status.ChangedWorkloadCount != workloads || got != dependencies {
			return fmt.Errorf("environment offers %d workloads and %s", e.Status.ChangedWorkloadCount, got)
		}
		return nil
	})
	c.waitForStatus(t, environment, "Held: automatic syncs of ")
}

// testMissingDependency deletes an object that a workload refers to, together with another change.
func (c *fixture) testMissingDependency(t *testing.T) {
	t.Helper()
	known := c.recordNames(t, "alice", v1alpha1.SyncTypeDependency)
	states := c.watchStates(t)
	c.applySyncPolicy(t, stopped)
	c.ann.Delete(t, c.source, "configmap/settings")
	c.applyToSource(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: jobs}, data: {every: day}}")
	c.waitForPrompt(t, "alice", 0, "[{ConfigMap 2}]")
	c.applySyncPolicy(t)
	record := c.waitForState(t, c.nextRecord(t, "alice", v1alpha1.SyncTypeDependency, known), v1alpha1.SyncStateManualIntervention)

	message := fmt.Sprintf("Failed to sync ConfigMap 'settings' from %s - does not exist", c.source)
	if record.Status.Attempts != 2 || problems(record) != message+"\n"+v1alpha1.ReasonSourceMissing+": "+message {
		t.Errorf("after %d attempts: %s", record.Status.Attempts, problems(record))
	}
	states.expect(t, record.Name, v1alpha1.SyncStatePending, v1alpha1.SyncStateInProgress, v1alpha1.SyncStateFailed,
		v1alpha1.SyncStateRetrying,
		v1alpha1.SyncStateInProgress, v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention)
	c.waitForStatus(t, "alice", message)
	objects := c.objectsIn(t, c.target)
	if level := text(objects["ConfigMap settings"], "data", "level"); level != "info" {
		t.Errorf("level of the previous copy = %q", level)
	}
	if every := text(objects["ConfigMap jobs"], "data", "every"); every != "day" {
		t.Errorf("the other change was not synced: every = %q", every)
	}
	c.waitForWarning(t, "alice", message)

	c.applyToSource(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: debug}}")
	c.mustRequest(t, c.dave, "syncstatuses/"+record.Name+"/retry", all)
	c.waitForState(t, record.Name, v1alpha1.SyncStateCompleted)
	if level := text(c.object(t, c.target, "ConfigMap settings"), "data", "level"); level != "debug" {
		t.Errorf("level of the copy = %q", level)
	}
	c.waitForStatus(t, "alice", "Synced")
}

// waitForWarning waits for a warning Event about an environment.
func (c *fixture) waitForWarning(t *testing.T, environment, message string) {
	t.Helper()
	mirrortest.Eventually(t, "warning Event: "+message, func(ctx context.Context) error {
		out, err := c.Administrator.Run(ctx, "events", "-n", c.team, "--for=environment/"+environment, "--types=Warning")
		if err == nil && !strings.Contains(out, message) {
			err = fmt.Errorf("kubectl events prints %q", out)
		}
		return err
	})
}

// watchedStates records the states of records.
type watchedStates struct {
	ended chan struct{}
	stop  func()

	mu   sync.Mutex
	seen map[string][]v1alpha1.SyncState
}

// watchStates watches the states of the team's records until expect is called.
func (c *fixture) watchStates(t *testing.T) *watchedStates {
	t.Helper()
	watch, err := c.dave.Own.ConfigbutlerV1alpha1().SyncStatuses(c.team).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	w := &watchedStates{seen: map[string][]v1alpha1.SyncState{}, ended: make(chan struct{}), stop: watch.Stop}
	go func() {
		defer close(w.ended)
		for event := range watch.ResultChan() {
			if record, ok := event.Object.(*v1alpha1.SyncStatus); ok {
				w.record(record.Name, record.Status.State)
			}
		}
	}()
	return w
}

func (w *watchedStates) record(name string, state v1alpha1.SyncState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before := w.seen[name]; len(before) == 0 || before[len(before)-1] != state {
		w.seen[name] = append(before, state)
	}
}

// states returns the states of a record so far.
func (w *watchedStates) states(name string) []v1alpha1.SyncState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen[name])
}

// expect waits for the last of the states of a record, which the watch may send later than a read shows it. Then it stops the watch, and
// expects all of the states.
func (w *watchedStates) expect(t *testing.T, name string, want ...v1alpha1.SyncState) {
	t.Helper()
	mirrortest.Eventually(t, "the watch sends the last state of "+name, func(context.Context) error {
		got := w.states(name)
		if len(got) == 0 || got[len(got)-1] != want[len(want)-1] {
			return fmt.Errorf("states: %v", got)
		}
		return nil
	})
	w.stop()
	<-w.ended
	if got := w.states(name); !slices.Equal(got, want) {
		t.Errorf("states of %s: %v, want %v", name, got, want)
	}
}
