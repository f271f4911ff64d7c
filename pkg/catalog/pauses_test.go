// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestEditsMadeDuringAPauseKeepTheirActor(t *testing.T) {
	s := runningFixture(t)
	until := s.pause("shop", "eve")
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) {
		catalog.Spec.Patches = []v1alpha1.Patch{patchOf("worker", imagePatch)}
	})
	s.waitForRevision("shop", 1)
	s.put("api", "shop/api:2")
	s.stepWindow()
	s.stop()
	s.start(0)
	s.waitForWatches()
	s.stepWindow()
	s.expectRecords(firstRecord)
	s.waitForImages(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	if pending := s.catalog("shop").Status.PendingEdits; len(pending) == 0 || pending[len(pending)-1].Actor != "adam" {
		t.Errorf("pending edits = %+v", pending)
	}
	s.pauseEnds(until)
	s.waitForRevision("shop", 3)
	s.stepWindow()
	// Records are sorted by when their changes were made or detected.
	s.expectRecords(firstRecord, "shop 3 Applied by adam Changed worker (1)", "shop 2 AutoApplied Changed api (1)")
	if pending := s.catalog("shop").Status.PendingEdits; len(pending) > 0 {
		t.Errorf("pending edits = %+v", pending)
	}
}

// TestEditsOfThePauseDoNotWait extends a pause, after the source has changed.
func TestEditsOfThePauseDoNotWait(t *testing.T) {
	s := runningFixture(t)
	s.pause("shop", "eve")
	s.put("api", "shop/api:2")
	until := s.pause("shop", "adam")
	if pending := s.catalog("shop").Status.PendingEdits; len(pending) > 0 {
		t.Errorf("pending edits = %+v", pending)
	}
	s.stepWindow()
	s.expectRecords(firstRecord)
	s.pauseEnds(until)
	s.waitForRevision("shop", 2)
	s.stepWindow()
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api (1)")
}

func TestFailingEditsDuringAPauseFailAtItsEnd(t *testing.T) {
	s := runningFixture(t)
	until := s.pause("shop", "eve")
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{failingPatch} })
	s.stepWindow()
	s.expectRecords(firstRecord)
	s.pauseEnds(until)
	if record := s.waitForState(v1alpha1.SyncStateFailed); record.Status.Error.Reason != v1alpha1.ReasonPatchFailed {
		t.Errorf("status of the record = %+v", record.Status)
	}
}

// TestPinsRemovedDuringAPause checks that the changes that a pin has held back are attributed to the user who removes it.
func TestPinsRemovedDuringAPause(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(s *fixture)
		want      string
	}{
		"and nothing else": {func(*fixture) {}, "shop 3 Applied by erin Changed api (1)"},
		"over a restart, and the source changes": {func(s *fixture) {
			s.stop()
			s.put("worker", "shop/worker:2")
			s.start(0)
			s.waitForWatches()
		}, "shop 3 Applied by erin Changed api Changed worker (2)"},
		"and patched": {func(s *fixture) {
			s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) {
				catalog.Spec.Patches = []v1alpha1.Patch{patchOf("worker", imagePatch)}
			})
		}, "shop 3 Applied by adam Changed api Changed worker (2)"},
		"and pinned again": {func(s *fixture) { s.edit("shop", "adam", pin(2)) }, ""},
		"which is then ended": {func(s *fixture) {
			s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PauseUntil = nil })
			s.waitForRevision("shop", 3)
		}, "shop 3 Applied by adam Changed api (1)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := runningFixture(t)
			s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) {
				catalog.Spec.Patches = []v1alpha1.Patch{patchOf("worker", `{"metadata":{"labels":{"team":"blue"}}}`)}
			})
			s.waitForRevision("shop", 2)
			records := []string{firstRecord, "shop 2 Applied by eve Changed worker (1)"}
			s.edit("shop", "eve", pin(2))
			s.waitForRevision("shop", 2)
			s.put("api", "shop/api:2")
			until := s.pause("shop", "eve")
			s.edit("shop", "erin", pin(0))
			s.stepWindow()
			test.meanwhile(s)
			s.stepWindow()
			s.pauseEnds(until)
			if test.want != "" {
				s.waitForRevision("shop", 3)
				records = append(records, test.want)
			}
			s.stepWindow()
			s.expectRecords(records...)
			if pending := s.catalog("shop").Status.PendingEdits; len(pending) > 0 {
				t.Errorf("pending edits = %+v", pending)
			}
		})
	}
}
