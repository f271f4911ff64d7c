// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

// watched counts the open watches of the source, by namespace and type.
type watched struct {
	*fixture
	open map[string]watch.Interface
}

// watchedFixture returns a fixture with an environment without copies.
func watchedFixture(t *testing.T) *watched {
	t.Helper()
	w := &watched{fixture: newFixture(t), open: map[string]watch.Interface{}}
	w.source.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		opened, err := w.source.Tracker().Watch(action.GetResource(), action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		name := action.GetNamespace() + "/" + action.GetResource().Resource
		w.open[name] = opened
		return true, &closing{opened, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.open[name] == opened {
				delete(w.open, name)
			}
		}}, nil
	})
	w.put("settings", "1")
	w.put("secret-database", "1")
	w.add("alice")
	w.start(0)
	return w
}

// closing is a watch that reports when it is stopped.
type closing struct {
	watch.Interface
	closed func()
}

// Stop ends the watch.
func (c *closing) Stop() {
	c.Interface.Stop()
	c.closed()
}

// watches waits until exactly these types are watched.
func (w *watched) watches(want ...string) {
	w.Helper()
	w.eventually("watches", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		var got []string
		for name := range w.open {
			got = append(got, name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}

func TestWatchesFollowTheIndex(t *testing.T) {
	w := watchedFixture(t)
	w.watches()
	w.sync("alice", "settings")
	w.watches("production/configmaps")
	w.put("settings", "2")
	w.expectRecords("alice Pending* Changed ConfigMap settings")
	w.sync("alice", "settings", "secret-database")
	w.watches("production/configmaps", "production/secrets")
	w.put("secret-database", "2")
	w.expectRecords("alice Superseded Changed ConfigMap settings", "alice Pending* Changed Secret secret-database")
	w.sync("alice")
	w.watches()
}

// TestLostWatches has watches end, and makes changes before they are opened again.
func TestLostWatches(t *testing.T) {
	w := watchedFixture(t)
	w.sync("alice", "settings", "secret-database")
	w.watches("production/configmaps", "production/secrets")
	w.stays()
	w.mu.Lock()
	var lost []watch.Interface
	for _, open := range w.open {
		lost = append(lost, open)
	}
	w.mu.Unlock()
	for _, open := range lost {
		open.(*watch.RaceFreeFakeWatcher).Error(&metav1.Status{
			Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
		})
		open.Stop()
	}
	w.put("settings", "2")
	w.remove("secret-database")
	w.stays("alice Pending* Changed ConfigMap settings Removed Secret secret-database")
}

// TestChangeAfterRead changes an object after a run has read it and before the index is updated.
func TestChangeAfterRead(t *testing.T) {
	s := begunFixture(t)
	s.windowPasses()
	late := s.copied("bob", "queue")
	s.put("queue", "2")
	s.expectRecords("alice Pending* Changed ConfigMap queue")
	s.record("bob", []v1alpha1.EnvironmentDependencyRecord{late})
	s.stays("alice Pending* Changed ConfigMap queue", "bob Pending* Changed ConfigMap queue")
}

// TestOverflow changes more objects than the intake can hold.
func TestOverflow(t *testing.T) {
	s := newFixture(t)
	s.capacity = 3
	for i := range 8 {
		s.put(fmt.Sprint("config", i), "1")
	}
	s.add("alice")
	s.sync("alice", "config0", "config1", "config2", "config3", "config4", "config5")
	s.start(0)
	s.watching("production/configmaps")
	s.windowPasses()
	for i := range 7 {
		s.put(fmt.Sprint("config", i), "2")
	}
	s.remove("config5")
	s.arrived(7)
	s.stays("alice Pending* Changed ConfigMap config0 Changed ConfigMap config1 Changed ConfigMap config2 " +
		"Changed ConfigMap config3 Changed ConfigMap config4 Removed ConfigMap config5")
}

// TestManyChangesAreListed changes more objects than are read one by one.
func TestManyChangesAreListed(t *testing.T) {
	const many = 150
	s := newFixture(t)
	s.add("alice")
	var names []string
	for i := range many {
		names = append(names, fmt.Sprintf("config%03d", i))
		s.put(names[i], "1")
	}
	s.sync("alice", names...)
	s.start(0)
	s.watching("production/configmaps")
	s.windowPasses()
	s.source.ClearActions()
	for i, name := range names {
		s.put(name, "2")
		s.arrived(int64(i + 1))
	}
	s.eventually("all changes are recorded", func() error {
		if differing, seen := s.differing("alice"), s.seen("alice"); len(differing) != many || !slices.Equal(differing, seen) {
			return fmt.Errorf("%d of %d", len(seen), len(differing))
		}
		return nil
	})
	for _, action := range s.source.Actions() {
		if action.GetVerb() == "get" {
			t.Errorf("object was read alone: %v", action)
		}
	}
	if records := s.syncStatuses(); len(records) != 1 || len(records[0].Status.ResourceSummaries) != many {
		t.Errorf("%d records", len(records))
	}
}

// TestUnreadableSource has reads of the source fail for a while, which must not be taken for changes.
func TestUnreadableSource(t *testing.T) {
	s := begunFixture(t)
	refuse := true
	s.source.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if refuse {
			return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "queue", errors.New("not yours"))
		}
		return false, nil, nil
	})
	s.windowPasses()
	s.put("queue", "2")
	s.stays()
	s.mu.Lock()
	refuse = false
	s.mu.Unlock()
	s.expectRecords("alice Pending* Changed ConfigMap queue")
}

// TestDeletedEnvironments deletes environments before a change is recorded.
func TestDeletedEnvironments(t *testing.T) {
	s := begunFixture(t)
	s.windowPasses()
	now := metav1.NewTime(s.clock.Now())
	s.change("bob", func(e *v1alpha1.Environment) { e.DeletionTimestamp, e.Finalizers = &now, []string{"example.com/wait"} })
	s.put("settings", "2")
	s.expectRecords("alice Pending* Changed ConfigMap settings")
	fakeapi.Delete[*v1alpha1.Environment](s.api, environmenttest.Teams, "alice")
	s.put("queue", "2")
	s.stays("alice Pending Changed ConfigMap settings")
}

// TestRecreatedEnvironment recreates an environment. The records of the former one belong to another object.
func TestRecreatedEnvironment(t *testing.T) {
	s := begunFixture(t)
	s.windowPasses()
	s.change("alice", func(e *v1alpha1.Environment) { e.UID = "another" })
	s.put("settings", "2")
	s.stays("bob Pending* Changed ConfigMap settings")
}

// TestFailedEnvironmentDoesNotBlockOthers checks that an environment that cannot be read delays neither the others nor later changes.
func TestFailedEnvironmentDoesNotBlockOthers(t *testing.T) {
	s := begunFixture(t)
	s.windowPasses()
	refuse := true
	s.api.Client.PrependReactor("get", "environments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if refuse && action.(clienttesting.GetAction).GetName() == "alice" {
			return true, nil, apierrors.NewInternalError(errors.New("it cannot be read"))
		}
		return false, nil, nil
	})
	s.put("settings", "2")
	s.expectRecords("bob Pending* Changed ConfigMap settings")
	s.put("queue", "2")
	s.stays("bob Pending* Changed ConfigMap settings")
	s.mu.Lock()
	refuse = false
	s.mu.Unlock()
	s.expectRecords("alice Pending* Changed ConfigMap queue Changed ConfigMap settings", "bob Pending* Changed ConfigMap settings")
}

// TestConcurrentWrites starts the run of a record and changes the status just before these are written.
func TestConcurrentWrites(t *testing.T) {
	s := begunFixture(t)
	s.put("queue", "2")
	s.stays("alice Pending* Changed ConfigMap queue")
	first, latest := true, s.environment("alice").Status.LatestDependencySync
	s.api.BeforeWrite(func(record runtime.Object) {
		if of, ok := record.(*v1alpha1.SyncStatus); ok && first && of.Name == latest {
			first = false
			s.move("alice", v1alpha1.SyncStateInProgress)
			s.change("alice", func(e *v1alpha1.Environment) { e.Status.Dismissals++ })
		}
	})
	s.put("secret-database", "2")
	s.stays("alice InProgress Changed ConfigMap queue", "alice Pending* Changed Secret secret-database")
	if first || s.environment("alice").Status.Dismissals != 1 {
		t.Error("no concurrent write was made, or it was reverted")
	}
}

// TestShorterWindow shortens the window while changes are pending.
func TestShorterWindow(t *testing.T) {
	s := begunFixture(t)
	s.windowPasses()
	s.put("queue", "2")
	s.arrived(1)
	s.clock.Step(2 * time.Second)
	s.window.Store(int64(time.Second))
	s.detector.PolicyChanged()
	s.waits("the change is recorded", func() error {
		if got := s.recordLines(); len(got) != 1 {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
}
