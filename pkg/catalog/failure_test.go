// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// unfit is a patch of api that fits only while the source says that a rollout is paused.
var failingPatch = v1alpha1.Patch{
	Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: "api"}, Type: v1alpha1.PatchJSON6902,
	Patch: `[{"op":"replace","path":"/spec/paused","value":false}]`,
}

// failing is a stage whose catalog shop has a patch that does not fit.
func failingStage(t *testing.T) *stage {
	t.Helper()
	s := runningStage(t)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{failingPatch} })
	s.waitForState(v1alpha1.SyncStateFailed)
	return s
}

// awaits waits until the record of an edit that adam has made is in a state.
func (s *stage) waitForState(state v1alpha1.SyncState) *v1alpha1.SyncStatus {
	s.Helper()
	var found v1alpha1.SyncStatus
	s.eventually(fmt.Sprintf("the record is %s", state), func() error {
		all := s.syncStatuses()
		at := slices.IndexFunc(all, func(r v1alpha1.SyncStatus) bool { return r.Status.Actor == "adam" && r.Status.State == state })
		if at < 0 {
			return fmt.Errorf("records: %q", s.recordLines())
		}
		found = all[at]
		return nil
	})
	return &found
}

func TestUnfitPatchesAreTriedAgainUntilSomebodyHasToLook(t *testing.T) {
	s := failingStage(t)
	record := s.waitForState(v1alpha1.SyncStateManualIntervention)
	if record.Status.Attempts != 5 || record.Status.Actor != "adam" || record.Status.Error.Reason != v1alpha1.ReasonPatchFailed {
		t.Errorf("the record is %+v, %+v", record.Status, record.Status.Error)
	}
	catalog := s.catalog("shop")
	ready := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != v1alpha1.ReasonPatchFailed || !strings.Contains(ready.Message, "patches[0]") {
		t.Errorf("the condition is %+v", ready)
	}
	if catalog.Status.Revision != 1 || s.images("shop")["api"] != "shop/api:1" {
		t.Errorf("revision %d offers %v", catalog.Status.Revision, s.images("shop"))
	}

	s.put("api", "shop/api:2", with(true, "spec", "paused"))
	s.stepWindow()
	asked, err := syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: "eve", At: s.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.api.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("syncstatuses"), asked, "teams"); err != nil {
		t.Fatal(err)
	}
	record = s.waitForState(v1alpha1.SyncStateApplied)
	if record.Status.Attempts != 6 || record.Status.Error != nil {
		t.Errorf("the record is %+v", record.Status)
	}
	s.eventually("the catalog is ready", func() error {
		conditions := s.catalog("shop").Status.Conditions
		if !meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", conditions)
		}
		return nil
	})
}

// dismiss puts a record aside as a user does.
func (s *stage) dismiss(record *v1alpha1.SyncStatus) {
	s.Helper()
	dismissed, err := syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateDismissed, By: "dana", At: s.clock.Now()})
	if err != nil {
		s.Fatal(err)
	}
	if err := s.api.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("syncstatuses"), dismissed, "teams"); err != nil {
		s.Fatal(err)
	}
}

// isReady waits until a catalog says whether it is, and returns why it is not.
func (s *stage) waitForReady(name string, want bool) (message string) {
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

// ask has somebody ask to read the source of a catalog anew.
func (s *stage) requestSync(name string) {
	s.Helper()
	s.replace(name, func(catalog *v1alpha1.AppCatalog) {
		catalog.Status.PendingSyncs = []v1alpha1.PendingCatalogSync{{ID: "1", Actor: "eve", Time: metav1.NewTime(s.clock.Now())}}
	})
}

// Nothing has been put right when somebody does not want to hear of it any more.
func TestWhatIsDismissedIsNotSettled(t *testing.T) {
	paused := with(true, "spec", "paused")
	for name, settle := range map[string]func(s *stage){
		"another edit": func(s *stage) {
			s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = nil })
		},
		"a comparison of everything": func(s *stage) {
			s.put("api", "shop/api:3", paused)
			s.stepWindow()
			s.requestSync("shop")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := failingStage(t)
			s.dismiss(s.waitForState(v1alpha1.SyncStateManualIntervention))
			s.put("worker", "shop/worker:2")
			s.waitForRevision("shop", 2)
			if why := s.waitForReady("shop", false); !strings.Contains(why, "patches[0]") {
				t.Errorf("after a batch: %s", why)
			}
			s.stop()
			s.start(0)
			s.waitForWatches()
			s.put("worker", "shop/worker:3")
			s.waitForRevision("shop", 3)
			s.waitForReady("shop", false)
			settle(s)
			s.waitForReady("shop", true)
			s.put("worker", "shop/worker:4")
			s.stepWindow()
			s.waitForReady("shop", true)
		})
	}
}

// A comparison that goes wrong settles nothing, and what has been settled does not come back with the next failure.
func TestWhatIsDismissedStaysSettled(t *testing.T) {
	paused := with(true, "spec", "paused")
	s := failingStage(t)
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

// What a user has put right in the spec is not held against the catalog: what failed because of it is tried again.
func TestEditsHaveWhatFailedTriedAgain(t *testing.T) {
	s := newStage(t, appCatalog("shop", "api"))
	s.put("api", "shop/api:1", with(true, "spec", "paused"))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{failingPatch} })
	s.waitForRevision("shop", 2)
	s.put("api", "shop/api:2")
	s.waitForRecord("shop 0 ManualIntervention (0)")
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Ignore = nil })
	s.eventually("an edit that puts nothing right is tried with", func() error {
		at := slices.IndexFunc(s.syncStatuses(), func(r v1alpha1.SyncStatus) bool {
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
		t.Errorf("the catalog offers %s", got)
	}
}

// What has been put right in the source is not held against the catalog once somebody has it read.
func TestReadingTheSourceHasWhatFailedTriedAgain(t *testing.T) {
	s := newStage(t, appCatalog("shop", "api"))
	s.put("api", "shop/api:1", with(true, "spec", "paused"))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{failingPatch} })
	s.waitForRevision("shop", 2)
	s.put("api", "shop/api:2")
	s.waitForRecord("shop 0 ManualIntervention (0)")
	s.put("api", "shop/api:3", with(true, "spec", "paused"))
	s.waitForRevision("shop", 3)
	if !stalled(s.catalog("shop")) {
		t.Errorf("nobody is needed: %q, %+v", s.recordLines(), s.catalog("shop").Status.Conditions)
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

// comes waits until there is a record.
func (s *stage) waitForRecord(want string) {
	s.Helper()
	s.eventually("a record: "+want, func() error {
		if got := s.recordLines(); !slices.Contains(got, want) {
			return fmt.Errorf("records: %q", got)
		}
		return nil
	})
}

func TestWhatFailedIsAppliedOnceItFits(t *testing.T) {
	s := failingStage(t)
	s.put("api", "shop/api:2", with(true, "spec", "paused"))
	s.waitForState(v1alpha1.SyncStateApplied)
	s.stepWindow()
	if got := s.images("shop")["api"]; got != "shop/api:2" {
		t.Errorf("the catalog offers %s", got)
	}
	revisions := map[int64]int{}
	for _, record := range s.syncStatuses() {
		revisions[record.Status.Revision]++
	}
	if now := s.catalog("shop").Status.Revision; now != 2 || !maps.Equal(revisions, map[int64]int{1: 1, 2: len(s.recordLines()) - 1}) {
		t.Errorf("revision %d, records %q", now, s.recordLines())
	}
}

func TestOneCatalogsFailureIsNoneOfAnother(t *testing.T) {
	s := newStage(t, appCatalog("shop", "api", "worker"), appCatalog("work", "worker", "api"))
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
		t.Errorf("the other catalog offers %v", got)
	}
}

func TestRequestsToReadTheSourceAreAnswered(t *testing.T) {
	s := runningStage(t)
	s.replace("shop", func(catalog *v1alpha1.AppCatalog) {
		catalog.Status.PendingSyncs = []v1alpha1.PendingCatalogSync{{ID: "a1", Actor: "adam", Time: metav1.NewTime(s.clock.Now())}}
	})
	s.eventually("the request is answered", func() error {
		if pending := s.catalog("shop").Status.PendingSyncs; len(pending) > 0 {
			return fmt.Errorf("%+v", pending)
		}
		return nil
	})
	s.expectRecords(firstRecord)
}
