// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// specEdit sets one field of a spec. The wants are those for the edit, and for the edit back.
type specEdit struct {
	edit                       func(*v1alpha1.EnvironmentSpec)
	writesNoMore, back         bool
	automaticNoMore, backAgain bool
}

// specEdits has an edit for each field of the spec.
var specEdits = map[string]specEdit{
	"CatalogRef":         {edit: func(s *v1alpha1.EnvironmentSpec) { s.CatalogRef.Name = "shop" }},
	"TargetNamespace":    {edit: func(s *v1alpha1.EnvironmentSpec) { s.TargetNamespace = "twin" }},
	"CreateNamespace":    {edit: func(s *v1alpha1.EnvironmentSpec) { s.CreateNamespace = true }, backAgain: true},
	"Type":               {edit: func(s *v1alpha1.EnvironmentSpec) { s.Type = v1alpha1.EnvironmentBranch }},
	"BaseEnvironmentRef": {edit: func(s *v1alpha1.EnvironmentSpec) { s.BaseEnvironmentRef = &v1alpha1.EnvironmentReference{Name: "base"} }},
	"BranchWorkloads": {
		edit:      func(s *v1alpha1.EnvironmentSpec) { s.BranchWorkloads = []v1alpha1.WorkloadReference{{Name: "web"}} },
		backAgain: true,
	},
	"AutoSync": {edit: func(s *v1alpha1.EnvironmentSpec) { s.AutoSync = true }, back: true},
	"Shadow":   {edit: func(s *v1alpha1.EnvironmentSpec) { s.Shadow = true }, writesNoMore: true, automaticNoMore: true},
	"Patches":  {edit: func(s *v1alpha1.EnvironmentSpec) { s.Patches = []v1alpha1.Patch{{Patch: "{}"}} }},
	"Include": {
		edit:      func(s *v1alpha1.EnvironmentSpec) { s.Include = []v1alpha1.IncludedObject{{Name: "settings"}} },
		backAgain: true,
	},
	"Adapt": {edit: func(s *v1alpha1.EnvironmentSpec) { s.Adapt.Replicas = "Keep" }},
	"PinnedRevision": {
		edit: func(s *v1alpha1.EnvironmentSpec) { s.PinnedRevision = new(int64) },
		back: true, automaticNoMore: true, backAgain: true,
	},
	"HistoryLimit": ignored(func(s *v1alpha1.EnvironmentSpec) { s.HistoryLimit = new(int32) }),
	"SyncWindows":  ignored(func(s *v1alpha1.EnvironmentSpec) { s.SyncWindows = []v1alpha1.SyncWindow{{Name: "night"}} }),
	"TTL":          ignored(func(s *v1alpha1.EnvironmentSpec) { s.TTL = &metav1.Duration{Duration: time.Hour} }),
	"DeletionPolicy": {
		edit:         func(s *v1alpha1.EnvironmentSpec) { s.DeletionPolicy = v1alpha1.DeletionPolicyOrphan },
		writesNoMore: true, automaticNoMore: true, backAgain: true,
	},
	"ServiceAccountName": {edit: func(s *v1alpha1.EnvironmentSpec) { s.ServiceAccountName = "deployer" }},
}

// ignored returns an edit that neither function counts.
func ignored(edit func(*v1alpha1.EnvironmentSpec)) specEdit {
	return specEdit{edit: edit, writesNoMore: true, back: true, automaticNoMore: true, backAgain: true}
}

// TestEnvironmentEdits checks both functions for an edit of each field of the spec. A new field must be added to specEdits, and considered
// in both functions.
func TestEnvironmentEdits(t *testing.T) {
	for field := range reflect.TypeFor[v1alpha1.EnvironmentSpec]().Fields() {
		t.Run(field.Name, func(t *testing.T) {
			tt, ok := specEdits[field.Name]
			if !ok {
				t.Fatal("specEdits has no edit of this field")
			}
			before, after := &v1alpha1.EnvironmentSpec{}, &v1alpha1.EnvironmentSpec{}
			tt.edit(after)
			if reflect.ValueOf(after).Elem().FieldByIndex(field.Index).IsZero() {
				t.Fatal("the edit does not set the field")
			}
			got := specEdit{
				writesNoMore: access.EnvironmentWritesNoMore(after, before), back: access.EnvironmentWritesNoMore(before, after),
				automaticNoMore: access.AutomaticSyncsDoNoMore(after, before), backAgain: access.AutomaticSyncsDoNoMore(before, after),
			}
			if got.writesNoMore != tt.writesNoMore || got.back != tt.back {
				t.Errorf("writes no more: %v, back %v; want %v, %v", got.writesNoMore, got.back, tt.writesNoMore, tt.back)
			}
			if got.automaticNoMore != tt.automaticNoMore || got.backAgain != tt.backAgain {
				t.Errorf("automatic syncs do no more: %v, back %v; want %v, %v",
					got.automaticNoMore, got.backAgain, tt.automaticNoMore, tt.backAgain)
			}
		})
	}
}
