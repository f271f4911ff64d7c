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
var unfit = v1alpha1.Patch{
	Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: "api"}, Type: v1alpha1.PatchJSON6902,
	Patch: `[{"op":"replace","path":"/spec/paused","value":false}]`,
}

// failing is a stage whose catalog shop has a patch that does not fit.
func failing(t *testing.T) *stage {
	t.Helper()
	s := begunStage(t)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{unfit} })
	s.awaits(v1alpha1.SyncStateFailed)
	return s
}

// awaits waits until the record of an edit that adam has made is in a state.
func (s *stage) awaits(state v1alpha1.SyncState) *v1alpha1.SyncStatus {
	s.Helper()
	var found v1alpha1.SyncStatus
	s.eventually(fmt.Sprintf("the record is %s", state), func() error {
		all := s.syncStatuses()
		at := slices.IndexFunc(all, func(r v1alpha1.SyncStatus) bool { return r.Status.Actor == "adam" && r.Status.State == state })
		if at < 0 {
			return fmt.Errorf("records: %q", s.told())
		}
		found = all[at]
		return nil
	})
	return &found
}

func TestUnfitPatchesAreTriedAgainUntilSomebodyHasToLook(t *testing.T) {
	s := failing(t)
	record := s.awaits(v1alpha1.SyncStateManualIntervention)
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
	s.windowPasses()
	asked, err := syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: "eve", At: s.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.api.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("syncstatuses"), asked, "teams"); err != nil {
		t.Fatal(err)
	}
	record = s.awaits(v1alpha1.SyncStateApplied)
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
func (s *stage) isReady(name string, want bool) (message string) {
	s.Helper()
	s.eventually(fmt.Sprintf("the catalog is ready: %t", want), func() error {
		catalog := s.catalog(name)
		ready := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || (ready.Status == metav1.ConditionTrue) != want || len(catalog.Status.PendingSyncs) > 0 {
			return fmt.Errorf("%q, %+v", s.told(), catalog.Status.Conditions)
		}
		message = ready.Message
		return nil
	})
	return message
}

// ask has somebody ask to read the source of a catalog anew.
func (s *stage) ask(name string) {
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
			s.windowPasses()
			s.ask("shop")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := failing(t)
			s.dismiss(s.awaits(v1alpha1.SyncStateManualIntervention))
			s.put("worker", "shop/worker:2")
			s.reaches("shop", 2)
			if why := s.isReady("shop", false); !strings.Contains(why, "patches[0]") {
				t.Errorf("after a batch: %s", why)
			}
			s.stop()
			s.start(0)
			s.watching()
			s.put("worker", "shop/worker:3")
			s.reaches("shop", 3)
			s.isReady("shop", false)
			settle(s)
			s.isReady("shop", true)
			s.put("worker", "shop/worker:4")
			s.windowPasses()
			s.isReady("shop", true)
		})
	}
}

// A comparison that goes wrong settles nothing, and what has been settled does not come back with the next failure.
func TestWhatIsDismissedStaysSettled(t *testing.T) {
	paused := with(true, "spec", "paused")
	s := failing(t)
	s.dismiss(s.awaits(v1alpha1.SyncStateManualIntervention))
	s.ask("shop")
	s.comes("shop 0 ManualIntervention by eve (0)")
	s.isReady("shop", false)
	s.put("api", "shop/api:2", paused)
	s.windowPasses()
	s.ask("shop")
	s.isReady("shop", true)

	s.put("api", "shop/api:3")
	s.comes("shop 0 Failed (0)")
	s.isReady("shop", false)
	s.put("api", "shop/api:4", paused)
	s.isReady("shop", true)
}

// What a user has put right in the spec is not held against the catalog: what failed because of it is tried again.
func TestEditsHaveWhatFailedTriedAgain(t *testing.T) {
	s := newStage(t, appCatalog("shop", "api"))
	s.put("api", "shop/api:1", with(true, "spec", "paused"))
	s.start(0)
	s.reaches("shop", 1)
	s.watching()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{unfit} })
	s.reaches("shop", 2)
	s.put("api", "shop/api:2")
	s.comes("shop 0 ManualIntervention (0)")
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Ignore = nil })
	s.eventually("an edit that puts nothing right is tried with", func() error {
		at := slices.IndexFunc(s.syncStatuses(), func(r v1alpha1.SyncStatus) bool {
			return r.Status.AutoTriggered && r.Status.Attempts == 6 && r.Status.State == v1alpha1.SyncStateManualIntervention
		})
		if at < 0 {
			return fmt.Errorf("records: %q", s.told())
		}
		return nil
	})
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = nil })
	s.eventually("the catalog is ready", func() error {
		catalog := s.catalog("shop")
		if !meta.IsStatusConditionTrue(catalog.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%q, %+v", s.told(), catalog.Status.Conditions)
		}
		return nil
	})
	s.comes("shop 3 AutoApplied (0)")
	if got := s.images("shop")["api"]; got != "shop/api:2" {
		t.Errorf("the catalog offers %s", got)
	}
}

// What has been put right in the source is not held against the catalog once somebody has it read.
func TestReadingTheSourceHasWhatFailedTriedAgain(t *testing.T) {
	s := newStage(t, appCatalog("shop", "api"))
	s.put("api", "shop/api:1", with(true, "spec", "paused"))
	s.start(0)
	s.reaches("shop", 1)
	s.watching()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{unfit} })
	s.reaches("shop", 2)
	s.put("api", "shop/api:2")
	s.comes("shop 0 ManualIntervention (0)")
	s.put("api", "shop/api:3", with(true, "spec", "paused"))
	s.reaches("shop", 3)
	if !stalled(s.catalog("shop")) {
		t.Errorf("nobody is needed: %q, %+v", s.told(), s.catalog("shop").Status.Conditions)
	}
	s.replace("shop", func(catalog *v1alpha1.AppCatalog) {
		catalog.Status.PendingSyncs = []v1alpha1.PendingCatalogSync{{ID: "1", Actor: "eve", Time: metav1.NewTime(s.clock.Now())}}
	})
	s.eventually("the catalog is ready", func() error {
		catalog := s.catalog("shop")
		if !meta.IsStatusConditionTrue(catalog.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%q, %+v", s.told(), catalog.Status.Conditions)
		}
		return nil
	})
	s.comes("shop 3 AutoApplied (0)")
}

// comes waits until there is a record.
func (s *stage) comes(want string) {
	s.Helper()
	s.eventually("a record: "+want, func() error {
		if got := s.told(); !slices.Contains(got, want) {
			return fmt.Errorf("records: %q", got)
		}
		return nil
	})
}

func TestWhatFailedIsAppliedOnceItFits(t *testing.T) {
	s := failing(t)
	s.put("api", "shop/api:2", with(true, "spec", "paused"))
	s.awaits(v1alpha1.SyncStateApplied)
	s.windowPasses()
	if got := s.images("shop")["api"]; got != "shop/api:2" {
		t.Errorf("the catalog offers %s", got)
	}
	revisions := map[int64]int{}
	for _, record := range s.syncStatuses() {
		revisions[record.Status.Revision]++
	}
	if now := s.catalog("shop").Status.Revision; now != 2 || !maps.Equal(revisions, map[int64]int{1: 1, 2: len(s.told()) - 1}) {
		t.Errorf("revision %d, records %q", now, s.told())
	}
}

func TestOneCatalogsFailureIsNoneOfAnother(t *testing.T) {
	s := newStage(t, appCatalog("shop", "api", "worker"), appCatalog("work", "worker", "api"))
	s.start(0)
	s.reaches("shop", 1)
	s.reaches("work", 1)
	s.watching()
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{unfit} })
	s.put("api", "shop/api:2")
	s.reaches("work", 2)
	s.put("worker", "shop/worker:2")
	s.reaches("work", 3)
	if got := s.images("work"); !maps.Equal(got, map[string]string{"api": "shop/api:2", "worker": "shop/worker:2"}) {
		t.Errorf("the other catalog offers %v", got)
	}
}

func TestRequestsToReadTheSourceAreAnswered(t *testing.T) {
	s := begunStage(t)
	s.replace("shop", func(catalog *v1alpha1.AppCatalog) {
		catalog.Status.PendingSyncs = []v1alpha1.PendingCatalogSync{{ID: "a1", Actor: "adam", Time: metav1.NewTime(s.clock.Now())}}
	})
	s.eventually("the request is answered", func() error {
		if pending := s.catalog("shop").Status.PendingSyncs; len(pending) > 0 {
			return fmt.Errorf("%+v", pending)
		}
		return nil
	})
	s.tells(first)
}
