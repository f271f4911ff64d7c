// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	structuredpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/merge"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

// objectMerger merges desired objects into live ones and predicts the results.
type objectMerger struct {
	in     *Input
	merger merge.Merger
	// mergeAll is Planner.mergeAll.
	mergeAll bool
	// target makes copies without the environment's patches.
	target objectcopy.Target
	// previous holds Input.Previous by key.
	previous map[Key]*unstructured.Unstructured
	// autoscaled holds the workloads that desired autoscalers scale.
	autoscaled sets.Set[Key]
}

// versions returns the versions of an object to merge. Replicas are ignored once an autoscaler has set them.
func (m *objectMerger) versions(key Key, w *desiredObject, live *unstructured.Unstructured, owner owner) merge.Versions {
	v := merge.Versions{Live: live, Desired: w.object, Unpatched: w.unpatched}
	// The base of another writer's object, or of another API version, is no merge base.
	if base := m.in.Base[key]; base != nil && owner == ownerSelf && base.GroupVersionKind() == w.object.GroupVersionKind() {
		v.Base = base
	}
	if key.isWorkload() && m.isScaledByAutoscaler(key, live) {
		for _, version := range []**unstructured.Unstructured{&v.Base, &v.Desired, &v.Unpatched} {
			*version = withoutReplicas(*version)
		}
	}
	return v
}

// isScaledByAutoscaler reports whether the autoscaler of a workload has set its number of replicas.
func (m *objectMerger) isScaledByAutoscaler(key Key, live *unstructured.Unstructured) bool {
	owners := diff.ManagersOf(live).Of(structuredpath.MakePathOrDie("spec", "replicas"))
	return m.autoscaled.Has(key) && !slices.Contains(owners, v1alpha1.FieldManager)
}

// autoscaledBy returns the workloads that the autoscalers among desired objects scale.
func autoscaledBy(desired map[Key]*desiredObject) sets.Set[Key] {
	workloads := sets.New[Key]()
	for key, w := range desired {
		if key.GroupKind != autoscalers {
			continue
		}
		if of, ok := scaleTarget(w.object); ok {
			workloads.Insert(of)
		}
	}
	return workloads
}

func withoutReplicas(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	out := object.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "spec", "replicas")
	return out
}

// merge merges the desired object into the live one. A Branch keeps changes made in the target; for objects that are
// not workloads, changes of the source take precedence over them. An object that is taken over becomes as desired.
func (m *objectMerger) merge(ctx context.Context, key Key, v merge.Versions, owner owner) (merge.Result, error) {
	if !m.in.isBranch() || owner == ownerForeign {
		return m.merger.Shared(ctx, v)
	}
	if !key.isWorkload() {
		return m.merger.Branch(ctx, v, merge.Resolution{Take: []fieldpath.Path{nil}})
	}
	keep, err := chosenPaths(m.in.Resolution.Keep, key)
	if err != nil {
		return merge.Result{}, err
	}
	take, err := chosenPaths(m.in.Resolution.Take, key)
	if err != nil {
		return merge.Result{}, err
	}
	return m.merger.Branch(ctx, v, merge.Resolution{Keep: keep, Take: take})
}

// chosenPaths returns the fields that choices name for a workload. A choice without fields means the whole workload.
func chosenPaths(choices []v1alpha1.ConflictChoice, key Key) ([]fieldpath.Path, error) {
	var paths []fieldpath.Path
	for _, choice := range choices {
		if (v1alpha1.WorkloadReference{Kind: choice.Kind, Name: choice.Name}) != key.workload() {
			continue
		}
		if len(choice.Fields) == 0 {
			return []fieldpath.Path{nil}, nil
		}
		for _, field := range choice.Fields {
			path, err := fieldpath.Parse(field)
			if err != nil {
				return nil, err
			}
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// conflictOf returns the fields of a workload that a user must decide about.
func (m *objectMerger) conflictOf(ctx context.Context, key Key, w *desiredObject, fields []merge.Field) (v1alpha1.WorkloadConflict, error) {
	declared, err := m.patchConflicts(ctx, key, w)
	if err != nil {
		return v1alpha1.WorkloadConflict{}, err
	}
	of := v1alpha1.WorkloadConflict{Kind: v1alpha1.WorkloadKind(key.Kind), Name: key.Name}
	for _, field := range slices.Concat(fields, declared) {
		of.Fields = append(of.Fields, v1alpha1.FieldConflict{Field: field.Path.String(), Managers: field.Managers})
	}
	slices.SortFunc(of.Fields, func(a, b v1alpha1.FieldConflict) int { return cmp.Compare(a.Field, b.Field) })
	return of, nil
}

func compareConflicts(a, b v1alpha1.WorkloadConflict) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func sortFailures(failures []v1alpha1.ObjectFailure) {
	slices.SortFunc(failures, func(a, b v1alpha1.ObjectFailure) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
}
