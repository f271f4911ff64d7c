// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// TestUnreportedSourceChangesAreNotTheEditors edits a catalog before the event of a source change is delivered.
func TestUnreportedSourceChangesAreNotTheEditors(t *testing.T) {
	s := runningFixture(t)
	s.authors.late.Store(true)
	s.put("api", "shop/api:2", by("alice"))
	s.waitForEvents(1)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[:1] })
	s.waitForRevision("shop", 3)
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api (1)", "shop 3 Applied by adam Removed worker (1)")
}

// TestSourceChangesAppliedByAnEditAreTheEditors ends a preview before the event of a source change is delivered.
func TestSourceChangesAppliedByAnEditAreTheEditors(t *testing.T) {
	s := runningFixture(t)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = true })
	s.waitForRevision("shop", 1)
	s.authors.late.Store(true)
	s.put("api", "shop/api:2", by("alice"))
	s.waitForEvents(1)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = false })
	s.waitForRevision("shop", 2)
	s.expectRecords(firstRecord, "shop 2 Applied by eve Changed api (1)")
}

// TestEditsOfWorkloadsThatTheSourceHasChanged edits how a workload is offered that the source has just changed.
func TestEditsOfWorkloadsThatTheSourceHasChanged(t *testing.T) {
	labelled := v1alpha1.Patch{
		Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: "api"},
		Type:   v1alpha1.PatchMerge, Patch: `{"metadata":{"labels":{"team":"blue"}}}`,
	}
	patched := func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{labelled} }
	unpatched := func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = nil }
	for name, test := range map[string]struct {
		before, edit func(*v1alpha1.AppCatalog)
		want         []string
	}{
		"a patch that is added": {nil, patched, []string{"shop 2 AutoApplied Changed api (1)", "shop 3 Applied by adam Changed api (1)"}},
		"a patch that is removed": {
			patched, unpatched, []string{"shop 2 Applied by eve Changed api (1)", "shop 3 Applied by adam Changed api (1)"},
		},
		"an edit that does not change a patch": {
			patched, func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[:1] },
			[]string{"shop 2 Applied by eve Changed api (1)", "shop 3 AutoApplied Changed api (1)", "shop 4 Applied by adam Removed worker (1)"},
		},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, event late: %v", name, late), func(t *testing.T) {
				s := runningFixture(t)
				if test.before != nil {
					s.edit("shop", "eve", test.before)
					s.waitForRevision("shop", 2)
				}
				s.authors.late.Store(late)
				s.put("api", "shop/api:2")
				s.edit("shop", "adam", test.edit)
				s.waitForRecord(test.want[len(test.want)-1])
				s.stepWindow()
				got := s.recordLines()
				slices.Sort(got)
				if want := append([]string{firstRecord}, test.want...); !slices.Equal(got, want) {
					t.Errorf("records: %q, want %q", got, want)
				}
				if got := s.images("shop")["api"]; got != "shop/api:2" {
					t.Errorf("offered image = %s", got)
				}
			})
		}
	}
}

// TestTriggerBeforeAProcessedEdit has an edit that only an outdated cache shows as pending. Later source changes are recorded with their
// own batch.
func TestTriggerBeforeAProcessedEdit(t *testing.T) {
	before := beforeEdit(trigger{batch: syncstatus.EditBatch(2), generation: 2})
	for name, test := range map[string]struct {
		status v1alpha1.AppCatalogStatus
		want   bool
	}{
		"not processed":       {v1alpha1.AppCatalogStatus{ObservedGeneration: 1}, false},
		"processed":           {v1alpha1.AppCatalogStatus{ObservedGeneration: 2}, true},
		"followed by another": {v1alpha1.AppCatalogStatus{ObservedGeneration: 3}, true},
		"waiting for the end of a pause": {
			v1alpha1.AppCatalogStatus{ObservedGeneration: 2, PendingEdits: []v1alpha1.CatalogEdit{{Generation: 2}}}, false,
		},
		"processed, and another one": {
			v1alpha1.AppCatalogStatus{ObservedGeneration: 2, PendingEdits: []v1alpha1.CatalogEdit{{Generation: 3}}}, true,
		},
	} {
		if got := before.processed(&v1alpha1.AppCatalog{Status: test.status}); got != test.want {
			t.Errorf("%s: processed = %v", name, got)
		}
	}
}
