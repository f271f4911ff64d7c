// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// TestNeeds builds the source from Needs alone and expects the same plan as with the whole source.
func TestNeeds(t *testing.T) {
	for _, action := range []v1alpha1.SyncAction{v1alpha1.SyncActionAll, v1alpha1.SyncActionCluster} {
		t.Run(string(action), func(t *testing.T) {
			s := newFixture(t, production(t)...)
			if action == v1alpha1.SyncActionCluster {
				s.sync()
			}
			s.Action = action
			s.drop("ConfigMap", "web")
			want := written(s.plan())
			byName := []string{"ConfigMap", "Secret", "ServiceAccount"}
			kept := s.Source
			s.Source = slices.DeleteFunc(slices.Clone(kept), func(o *unstructured.Unstructured) bool { return slices.Contains(byName, o.GetKind()) })
			for before := -1; before != len(s.Source); {
				before = len(s.Source)
				s.Source = append(s.Source, needed(t, s.Input, kept)...)
			}
			if len(s.Source) == len(kept) {
				t.Error("the whole source is needed")
			}
			if diff := cmp.Diff(want, written(s.plan())); diff != "" {
				t.Errorf("plan differs from that of the whole source:\n%s", diff)
			}
		})
	}
}

// needed returns the objects that an input needs and does not have.
func needed(t *testing.T, s plan.Input, of []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	needs, err := planner.Needs(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range s.Source {
		needs.Delete(plan.KeyOf(o))
	}
	return slices.DeleteFunc(slices.Clone(of), func(o *unstructured.Unstructured) bool { return !needs.Has(plan.KeyOf(o)) })
}
