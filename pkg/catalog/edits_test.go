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

// TestWhatNoEventHasToldOfIsNotTheEditors edits a catalog before the event of a change of its source has come.
func TestWhatNoEventHasToldOfIsNotTheEditors(t *testing.T) {
	s := runningStage(t)
	s.authors.late.Store(true)
	s.put("api", "shop/api:2", by("alice"))
	s.waitForEvents(1)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[:1] })
	s.waitForRevision("shop", 3)
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api (1)", "shop 3 Applied by adam Removed worker (1)")
}

// TestEditsThatLetTheSourceInAreTheEditors ends a preview before the event of a change has come.
func TestEditsThatLetTheSourceInAreTheEditors(t *testing.T) {
	s := runningStage(t)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = true })
	s.waitForRevision("shop", 1)
	s.authors.late.Store(true)
	s.put("api", "shop/api:2", by("alice"))
	s.waitForEvents(1)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = false })
	s.waitForRevision("shop", 2)
	s.expectRecords(firstRecord, "shop 2 Applied by eve Changed api (1)")
}

// TestAnEditIsTheEditorsWhateverTheSourceDoes edits how a workload is offered that the source has just changed.
func TestAnEditIsTheEditorsWhateverTheSourceDoes(t *testing.T) {
	labelled := v1alpha1.Patch{
		Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: "api"}, Type: v1alpha1.PatchMerge, Patch: `{"metadata":{"labels":{"team":"blue"}}}`,
	}
	patched := func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{labelled} }
	unpatched := func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = nil }
	for name, test := range map[string]struct {
		before, edit func(*v1alpha1.AppCatalog)
		want         []string
	}{
		"a patch that is added":      {nil, patched, []string{"shop 2 AutoApplied Changed api (1)", "shop 3 Applied by adam Changed api (1)"}},
		"a patch that is taken away": {patched, unpatched, []string{"shop 2 Applied by eve Changed api (1)", "shop 3 Applied by adam Changed api (1)"}},
		"an edit that leaves a patch alone": {
			patched, func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[:1] },
			[]string{"shop 2 Applied by eve Changed api (1)", "shop 3 AutoApplied Changed api (1)", "shop 4 Applied by adam Removed worker (1)"},
		},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, event late: %v", name, late), func(t *testing.T) {
				s := runningStage(t)
				if test.before != nil {
					s.edit("shop", "eve", test.before)
					s.waitForRevision("shop", 2)
				}
				s.authors.late.Store(late)
				s.put("api", "shop/api:2")
				s.edit("shop", "adam", test.edit)
				s.waitForRecord(test.want[len(test.want)-1])
				s.stepWindow()
				told := s.recordLines()
				slices.Sort(told)
				if want := append([]string{firstRecord}, test.want...); !slices.Equal(told, want) {
					t.Errorf("records: %q, want %q", told, want)
				}
				if got := s.images("shop")["api"]; got != "shop/api:2" {
					t.Errorf("the catalog offers %s", got)
				}
			})
		}
	}
}

// TestNothingIsToldBeforeAnEditThatIsOver looks at an edit that a cache says is to be taken over. What the source has changed
// since it was is told by the batch that it comes with.
func TestNothingIsToldBeforeAnEditThatIsOver(t *testing.T) {
	before := beforeEdit(trigger{batch: syncstatus.EditBatch(2), generation: 2})
	for name, test := range map[string]struct {
		status v1alpha1.AppCatalogStatus
		over   bool
	}{
		"not taken over":       {v1alpha1.AppCatalogStatus{ObservedGeneration: 1}, false},
		"taken over":           {v1alpha1.AppCatalogStatus{ObservedGeneration: 2}, true},
		"followed by another":  {v1alpha1.AppCatalogStatus{ObservedGeneration: 3}, true},
		"waiting for a pause":  {v1alpha1.AppCatalogStatus{ObservedGeneration: 2, PendingEdits: []v1alpha1.CatalogEdit{{Generation: 2}}}, false},
		"taken over, one more": {v1alpha1.AppCatalogStatus{ObservedGeneration: 2, PendingEdits: []v1alpha1.CatalogEdit{{Generation: 3}}}, true},
	} {
		if over := before.processed(&v1alpha1.AppCatalog{Status: test.status}); over != test.over {
			t.Errorf("%s: over %v", name, over)
		}
	}
}
