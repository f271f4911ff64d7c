// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/mirrortest"
)

const (
	automatic = "autoSync: true"
	// stopped has nothing be done by itself.
	stopped = "suspend: {environmentAutoSync: true, dependencyAutoSync: true}"
)

// automated has an environment that follows production by itself, while nothing stops that.
func (s *stage) automated(t *testing.T) {
	c := s.newScene(t, "automated", shop, workloads("api", "worker"))
	defer s.govern(t)
	c.environment(t, "alice", automatic)
	c.says(t, "alice", "Synced")
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	if by := c.get(t, "alice").Status.AutomatedBy; by == nil || by.Username != "dave" {
		t.Errorf("automated by %+v", by)
	}
	c.killed(t)
	c.missing(t)
}

// killed has the switches that stop what is done by itself let prompts be shown only, and then both be carried out, the
// catalog first.
func (c *scene) killed(t *testing.T) {
	t.Helper()
	runs, refreshes := c.known(t, "alice", v1alpha1.SyncTypeEnvironment), c.known(t, "alice", v1alpha1.SyncTypeDependency)
	before := c.in(t, c.target)
	c.govern(t, stopped)
	c.setImage(t, "api", "shop/api:2")
	c.produce(t, fmt.Sprintf(needs, 2))
	c.prompts(t, "alice", 1, "[{ConfigMap 1} {Secret 2}]")
	c.unmoved(t, c.target, before)

	c.govern(t)
	c.says(t, "alice", "Synced")
	first := c.rests(t, c.next(t, "alice", v1alpha1.SyncTypeEnvironment, runs), v1alpha1.SyncStateCompleted)
	if first.Status.Actor != "" || !first.Status.AutoTriggered {
		t.Errorf("%s is by %q, automatic %v", first.Name, first.Status.Actor, first.Status.AutoTriggered)
	}
	c.follows(t, first, c.record(t, c.next(t, "alice", v1alpha1.SyncTypeDependency, refreshes)))
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	if page := text(c.of(t, c.target, "ConfigMap pages"), "data", "index.html"); page != "hello-2" {
		t.Errorf("the ConfigMap has %q", page)
	}
}

// follows expects what has been told of dependencies to be over after the run of the catalog, which brings them, and no run of
// its own to have begun before.
func (c *scene) follows(t *testing.T, catalog, dependencies *v1alpha1.SyncStatus) {
	t.Helper()
	status := &dependencies.Status
	if status.State != v1alpha1.SyncStateCompleted && status.State != v1alpha1.SyncStateSuperseded {
		t.Errorf("%s is %s: %s", dependencies.Name, status.State, c.tell(t.Context()))
	}
	if status.ResolvedAt.Before(catalog.Status.StartedAt) || status.StartedAt != nil && status.StartedAt.Before(catalog.Status.ResolvedAt) {
		t.Errorf("the catalog was synced from %v to %v, the dependencies from %v to %v", catalog.Status.StartedAt, catalog.Status.ResolvedAt,
			status.StartedAt, status.ResolvedAt)
	}
}

// prompts waits until an automatic environment that is held back offers what it would do.
func (c *scene) prompts(t *testing.T, environment string, workloads int32, dependencies string) {
	t.Helper()
	c.becomes(t, environment, "offers what has changed", func(e *v1alpha1.Environment) error {
		if got := fmt.Sprint(e.Status.ChangedDependencies); e.Status.ChangedWorkloadCount != workloads || got != dependencies {
			return fmt.Errorf("it offers %d workloads and %s", e.Status.ChangedWorkloadCount, got)
		}
		return nil
	})
	c.says(t, environment, "Held: automatic syncs of ")
}

// missing has production lose what a workload refers to, together with another change.
func (c *scene) missing(t *testing.T) {
	t.Helper()
	known := c.known(t, "alice", v1alpha1.SyncTypeDependency)
	states := c.follow(t)
	c.govern(t, stopped)
	c.ann.Run(t, "delete", "-n", c.source, "configmap/settings")
	c.produce(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: jobs}, data: {every: day}}")
	c.prompts(t, "alice", 0, "[{ConfigMap 2}]")
	c.govern(t)
	record := c.rests(t, c.next(t, "alice", v1alpha1.SyncTypeDependency, known), v1alpha1.SyncStateManualIntervention)

	message := fmt.Sprintf("Failed to sync ConfigMap 'settings' from %s - does not exist", c.source)
	if record.Status.Attempts != 2 || problems(record) != message+"\n"+v1alpha1.ReasonSourceMissing+": "+message {
		t.Errorf("after %d attempts: %s", record.Status.Attempts, problems(record))
	}
	states.expect(t, record.Name, v1alpha1.SyncStatePending, v1alpha1.SyncStateInProgress, v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying,
		v1alpha1.SyncStateInProgress, v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention)
	c.says(t, "alice", message)
	objects := c.in(t, c.target)
	if level := text(objects["ConfigMap settings"], "data", "level"); level != "info" {
		t.Errorf("the old copy has the level %q", level)
	}
	if every := text(objects["ConfigMap jobs"], "data", "every"); every != "day" {
		t.Errorf("the rest has not been synced: %q", every)
	}
	c.warned(t, "alice", message)

	c.produce(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: debug}}")
	c.asks(t, c.dave, "syncstatuses/"+record.Name+"/retry", all)
	c.rests(t, record.Name, v1alpha1.SyncStateCompleted)
	if level := text(c.of(t, c.target, "ConfigMap settings"), "data", "level"); level != "debug" {
		t.Errorf("the copy has the level %q", level)
	}
	c.says(t, "alice", "Synced")
}

// warned waits for a warning about an environment.
func (c *scene) warned(t *testing.T, environment, message string) {
	t.Helper()
	mirrortest.Eventually(t, "a warning: "+message, func(ctx context.Context) error {
		out, err := c.Administrator.Run(ctx, "events", "-n", c.team, "--for=environment/"+environment, "--types=Warning")
		if err == nil && !strings.Contains(out, message) {
			err = fmt.Errorf("kubectl events prints %q", out)
		}
		return err
	})
}

// states are those that records come to, as watched.
type states struct {
	seen map[string][]v1alpha1.SyncState
}

// follow watches the records of the team until it is asked what came.
func (c *scene) follow(t *testing.T) *watched {
	t.Helper()
	watch, err := c.dave.Own.ConfigbutlerV1alpha1().SyncStatuses(c.team).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	w := &watched{states: states{map[string][]v1alpha1.SyncState{}}, ended: make(chan struct{}), stop: watch.Stop}
	go func() {
		defer close(w.ended)
		for event := range watch.ResultChan() {
			if record, ok := event.Object.(*v1alpha1.SyncStatus); ok {
				w.note(record.Name, record.Status.State)
			}
		}
	}()
	return w
}

// watched are the states that are watched until they are asked for.
type watched struct {
	states
	ended chan struct{}
	stop  func()
}

func (s *states) note(record string, state v1alpha1.SyncState) {
	if before := s.seen[record]; len(before) == 0 || before[len(before)-1] != state {
		s.seen[record] = append(before, state)
	}
}

// expect expects a record to have come to states, one after the other.
func (w *watched) expect(t *testing.T, record string, want ...v1alpha1.SyncState) {
	t.Helper()
	w.stop()
	<-w.ended
	if got := w.seen[record]; !slices.Equal(got, want) {
		t.Error(errors.New(record), "went through", got, "want", want)
	}
}
