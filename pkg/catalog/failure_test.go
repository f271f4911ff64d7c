// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// failingPatch is a patch of api that applies only if spec.paused exists in the source.
var failingPatch = v1alpha1.Patch{
	Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: "api"}, Type: v1alpha1.PatchJSON6902,
	Patch: `[{"op":"replace","path":"/spec/paused","value":false}]`,
}

// failingFixture returns a fixture whose catalog shop has a patch that does not apply.
func failingFixture(t *testing.T) *fixture {
	t.Helper()
	s := runningFixture(t)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{failingPatch} })
	s.waitForState(v1alpha1.SyncStateFailed)
	return s
}

// waitForState waits until a record of an edit by adam is in a state.
func (s *fixture) waitForState(state v1alpha1.SyncState) *v1alpha1.SyncStatus {
	s.Helper()
	var found *v1alpha1.SyncStatus
	s.eventually(fmt.Sprintf("the record is %s", state), func() error {
		all := s.syncStatuses()
		at := slices.IndexFunc(all, func(r *v1alpha1.SyncStatus) bool { return r.Status.Actor == "adam" && r.Status.State == state })
		if at < 0 {
			return fmt.Errorf("records: %q", s.recordLines())
		}
		found = all[at]
		return nil
	})
	return found
}

func TestFailingPatchesAreRetriedUntilManualIntervention(t *testing.T) {
	s := failingFixture(t)
	record := s.waitForState(v1alpha1.SyncStateManualIntervention)
	if record.Status.Attempts != 5 || record.Status.Actor != "adam" || record.Status.Error.Reason != v1alpha1.ReasonPatchFailed {
		t.Errorf("status of the record = %+v, error %+v", record.Status, record.Status.Error)
	}
	catalog := s.catalog("shop")
	ready := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != v1alpha1.ReasonPatchFailed || !strings.Contains(ready.Message, "patches[0]") {
		t.Errorf("condition = %+v", ready)
	}
	if catalog.Status.Revision != 1 || s.images("shop")["api"] != "shop/api:1" {
		t.Errorf("revision = %d, offered images = %v", catalog.Status.Revision, s.images("shop"))
	}

	s.put("api", "shop/api:2", with(true, "spec", "paused"))
	s.stepWindow()
	retried, err := syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: "eve", At: s.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	s.api.Put(retried)
	record = s.waitForState(v1alpha1.SyncStateApplied)
	if record.Status.Attempts != 6 || record.Status.Error != nil {
		t.Errorf("status of the record = %+v", record.Status)
	}
	s.eventually("the catalog is ready", func() error {
		conditions := s.catalog("shop").Status.Conditions
		if !meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", conditions)
		}
		return nil
	})
}

// dismiss dismisses a record.
func (s *fixture) dismiss(record *v1alpha1.SyncStatus) {
	s.Helper()
	dismissed, err := syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateDismissed, By: "dana", At: s.clock.Now()})
	if err != nil {
		s.Fatal(err)
	}
	s.api.Put(dismissed)
}

// waitForReady waits until the condition Ready has a status and no request is pending. It returns the message of the condition.
func (s *fixture) waitForReady(name string, want bool) (message string) {
	s.Helper()
	s.eventually(fmt.Sprintf("the catalog is ready: %t", want), func() error {
		catalog := s.catalog(name)
		ready := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || (ready.Status == metav1.ConditionTrue) != want || len(catalog.Status.PendingSyncs) > 0 {
			return fmt.Errorf("%q, %+v", s.recordLines(), catalog.Status.Conditions)
		}
		message = ready.Message
		return nil
	})
	return message
}

// requestSync requests that the source of a catalog is read again.
func (s *fixture) requestSync(name string) {
	s.Helper()
	s.replace(name, func(catalog *v1alpha1.AppCatalog) {
		catalog.Status.PendingSyncs = []v1alpha1.PendingCatalogSync{{ID: "1", Actor: "eve", Time: metav1.NewTime(s.clock.Now())}}
	})
}

// TestDismissedFailuresAreNotResolved dismisses a failure, which lasts until an edit or a comparison of everything succeeds.
func TestDismissedFailuresAreNotResolved(t *testing.T) {
	paused := with(true, "spec", "paused")
	for name, resolve := range map[string]func(s *fixture){
		"another edit": func(s *fixture) {
			s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = nil })
		},
		"a comparison of everything": func(s *fixture) {
			s.put("api", "shop/api:3", paused)
			s.stepWindow()
			s.requestSync("shop")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := failingFixture(t)
			s.dismiss(s.waitForState(v1alpha1.SyncStateManualIntervention))
			s.put("worker", "shop/worker:2")
			s.waitForRevision("shop", 2)
			if why := s.waitForReady("shop", false); !strings.Contains(why, "patches[0]") {
				t.Errorf("message of Ready after a batch = %s", why)
			}
			s.stop()
			s.start(0)
			s.waitForWatches()
			s.put("worker", "shop/worker:3")
			s.waitForRevision("shop", 3)
			s.waitForReady("shop", false)
			resolve(s)
			s.waitForReady("shop", true)
			s.put("worker", "shop/worker:4")
			s.stepWindow()
			s.waitForReady("shop", true)
		})
	}
}

// TestResolvedFailuresStayResolved has a comparison that fails, which resolves nothing. A resolved failure is not reported again by the
// next failure.
func TestResolvedFailuresStayResolved(t *testing.T) {
	paused := with(true, "spec", "paused")
	s := failingFixture(t)
	s.dismiss(s.waitForState(v1alpha1.SyncStateManualIntervention))
	s.requestSync("shop")
	s.waitForRecord("shop 0 ManualIntervention by eve (0)")
	s.waitForReady("shop", false)
	s.put("api", "shop/api:2", paused)
	s.stepWindow()
	s.requestSync("shop")
	s.waitForReady("shop", true)

	s.put("api", "shop/api:3")
	s.waitForRecord("shop 0 Failed (0)")
	s.waitForReady("shop", false)
	s.put("api", "shop/api:4", paused)
	s.waitForReady("shop", true)
}

// failSourceChange starts the process, and has a source change fail until it needs manual intervention.
func (s *fixture) failSourceChange() {
	s.Helper()
	s.put("api", "shop/api:1", with(true, "spec", "paused"))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{failingPatch} })
	s.waitForRevision("shop", 2)
	s.put("api", "shop/api:2")
	s.waitForRecord("shop 0 ManualIntervention (0)")
}

// TestEditsRetryFailedRecords resolves the failure of a source change with an edit.
func TestEditsRetryFailedRecords(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api"))
	s.failSourceChange()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Ignore = nil })
	s.eventually("the record is retried after an edit that does not resolve its failure", func() error {
		at := slices.IndexFunc(s.syncStatuses(), func(r *v1alpha1.SyncStatus) bool {
			return r.Status.AutoTriggered && r.Status.Attempts == 6 && r.Status.State == v1alpha1.SyncStateManualIntervention
		})
		if at < 0 {
			return fmt.Errorf("records: %q", s.recordLines())
		}
		return nil
	})
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = nil })
	s.eventually("the catalog is ready", func() error {
		catalog := s.catalog("shop")
		if !meta.IsStatusConditionTrue(catalog.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%q, %+v", s.recordLines(), catalog.Status.Conditions)
		}
		return nil
	})
	s.waitForRecord("shop 3 AutoApplied (0)")
	if got := s.images("shop")["api"]; got != "shop/api:2" {
		t.Errorf("offered image = %s", got)
	}
}

// TestEditsRetryRecordsThatTheCacheLacks resolves a failure before the informer's cache shows that it needs manual intervention.
func TestEditsRetryRecordsThatTheCacheLacks(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api"))
	release := sync.OnceFunc(s.delayManualIntervention())
	t.Cleanup(release)
	s.failSourceChange()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = nil })
	s.waitForRevision("shop", 3)
	release()
	s.waitForRecord("shop 3 AutoApplied (0)")
	s.waitForReady("shop", true)
}

// delayManualIntervention delays the events of records that need manual intervention until release is called.
func (s *fixture) delayManualIntervention() (release func()) {
	released := make(chan struct{})
	s.api.Client.PrependWatchReactor("syncstatuses", func(action clienttesting.Action) (bool, apiwatch.Interface, error) {
		w, err := s.api.Client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		return true, drainedWatch{apiwatch.Filter(w, func(event apiwatch.Event) (apiwatch.Event, bool) {
			if record, ok := event.Object.(*v1alpha1.SyncStatus); ok && record.Status.State == v1alpha1.SyncStateManualIntervention {
				<-released
			}
			return event, true
		})}, nil
	})
	return func() { close(released) }
}

// drainedWatch is a watch whose events are received until it has ended, so that it does not wait for a client that has stopped it.
type drainedWatch struct{ apiwatch.Interface }

func (w drainedWatch) Stop() {
	w.Interface.Stop()
	go func() {
		for range w.ResultChan() {
		}
	}()
}

// TestSyncRequestsRetryFailedRecords resolves the failure of a source change in the source, and requests that it is read again.
func TestSyncRequestsRetryFailedRecords(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api"))
	s.failSourceChange()
	s.put("api", "shop/api:3", with(true, "spec", "paused"))
	s.waitForRevision("shop", 3)
	if !stalled(s.catalog("shop")) {
		t.Errorf("catalog is not stalled: %q, %+v", s.recordLines(), s.catalog("shop").Status.Conditions)
	}
	s.replace("shop", func(catalog *v1alpha1.AppCatalog) {
		catalog.Status.PendingSyncs = []v1alpha1.PendingCatalogSync{{ID: "1", Actor: "eve", Time: metav1.NewTime(s.clock.Now())}}
	})
	s.eventually("the catalog is ready", func() error {
		catalog := s.catalog("shop")
		if !meta.IsStatusConditionTrue(catalog.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%q, %+v", s.recordLines(), catalog.Status.Conditions)
		}
		return nil
	})
	s.waitForRecord("shop 3 AutoApplied (0)")
}

// waitForRecord waits for a record.
func (s *fixture) waitForRecord(want string) {
	s.Helper()
	s.eventually("a record: "+want, func() error {
		if got := s.recordLines(); !slices.Contains(got, want) {
			return fmt.Errorf("records: %q", got)
		}
		return nil
	})
}

func TestFailedPatchesAreRetriedUntilTheyApply(t *testing.T) {
	s := failingFixture(t)
	s.put("api", "shop/api:2", with(true, "spec", "paused"))
	s.waitForState(v1alpha1.SyncStateApplied)
	s.stepWindow()
	if got := s.images("shop")["api"]; got != "shop/api:2" {
		t.Errorf("offered image = %s", got)
	}
	revisions := map[int64]int{}
	for _, record := range s.syncStatuses() {
		revisions[record.Status.Revision]++
	}
	if now := s.catalog("shop").Status.Revision; now != 2 || !maps.Equal(revisions, map[int64]int{1: 1, 2: len(s.recordLines()) - 1}) {
		t.Errorf("revision = %d, records = %q", now, s.recordLines())
	}
}

func TestFailureOfOneCatalogDoesNotAffectAnother(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api", "worker"), appCatalog("work", "worker", "api"))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForRevision("work", 1)
	s.waitForWatches()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{failingPatch} })
	s.put("api", "shop/api:2")
	s.waitForRevision("work", 2)
	s.put("worker", "shop/worker:2")
	s.waitForRevision("work", 3)
	if got := s.images("work"); !maps.Equal(got, map[string]string{"api": "shop/api:2", "worker": "shop/worker:2"}) {
		t.Errorf("offered images of the other catalog = %v", got)
	}
}

func TestSyncRequestsAreProcessed(t *testing.T) {
	s := runningFixture(t)
	s.replace("shop", func(catalog *v1alpha1.AppCatalog) {
		catalog.Status.PendingSyncs = []v1alpha1.PendingCatalogSync{{ID: "a1", Actor: "adam", Time: metav1.NewTime(s.clock.Now())}}
	})
	s.eventually("the request is processed", func() error {
		if pending := s.catalog("shop").Status.PendingSyncs; len(pending) > 0 {
			return fmt.Errorf("%+v", pending)
		}
		return nil
	})
	s.expectRecords(firstRecord)
}
