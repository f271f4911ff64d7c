// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestWhatNoEventHasToldOfIsNotTheEditors edits a catalog before the event of a change of its source has come.
func TestWhatNoEventHasToldOfIsNotTheEditors(t *testing.T) {
	s := begunStage(t)
	s.authors.late.Store(true)
	s.put("api", "shop/api:2", by("alice"))
	s.arrived(1)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[:1] })
	s.reaches("shop", 3)
	s.tells(first, "shop 2 AutoApplied Changed api (1)", "shop 3 Applied by adam Removed worker (1)")
}

// TestEditsThatLetTheSourceInAreTheEditors ends a preview before the event of a change has come.
func TestEditsThatLetTheSourceInAreTheEditors(t *testing.T) {
	s := begunStage(t)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = true })
	s.reaches("shop", 1)
	s.authors.late.Store(true)
	s.put("api", "shop/api:2", by("alice"))
	s.arrived(1)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = false })
	s.reaches("shop", 2)
	s.tells(first, "shop 2 Applied by eve Changed api (1)")
}
