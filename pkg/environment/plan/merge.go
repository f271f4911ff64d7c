// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/merge"
)

// versions are an object as it was wanted, is, and is wanted now. The number of replicas is an autoscaler's once that has set it.
func (d *draft) versions(key Key, w *wanted, live *unstructured.Unstructured, owner owner) merge.Versions {
	v := merge.Versions{Live: live, Desired: w.desired, Unpatched: w.undeclared}
	// What was wanted of another object, or of another version of it, tells nothing.
	if base := d.Base[key]; base != nil && owner == ours && base.GroupVersionKind() == w.desired.GroupVersionKind() {
		v.Base = base
	}
	if key.isWorkload() && d.isScaled(key, live) {
		for _, version := range []**unstructured.Unstructured{&v.Base, &v.Desired, &v.Unpatched} {
			*version = withoutReplicas(*version)
		}
	}
	return v
}

func withoutReplicas(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	out := object.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "spec", "replicas")
	return out
}

// merge says what is to be applied to a live object. In a Branch, what was changed by hand survives; where the source has changed
// the same in something that is no workload, the source wins. What is taken over becomes what is wanted.
func (d *draft) merge(ctx context.Context, key Key, v merge.Versions, owner owner) (merge.Result, error) {
	if !d.isBranch() || owner == others {
		return d.merger.Shared(ctx, v)
	}
	if !key.isWorkload() {
		return d.merger.Branch(ctx, v, merge.Resolution{Take: []fieldpath.Path{nil}})
	}
	keep, err := chosen(d.Resolution.Keep, key)
	if err != nil {
		return merge.Result{}, err
	}
	take, err := chosen(d.Resolution.Take, key)
	if err != nil {
		return merge.Result{}, err
	}
	return d.merger.Branch(ctx, v, merge.Resolution{Keep: keep, Take: take})
}

// chosen returns the fields that choices name of a workload. No fields means all of them.
func chosen(choices []v1alpha1.ConflictChoice, key Key) ([]fieldpath.Path, error) {
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

// conflict takes down a workload about which somebody has to decide.
func (d *draft) conflict(ctx context.Context, key Key, w *wanted, fields []merge.Field) error {
	declared, err := d.declared(ctx, key, w)
	if err != nil {
		return err
	}
	of := v1alpha1.WorkloadConflict{Kind: v1alpha1.WorkloadKind(key.Kind), Name: key.Name}
	for _, field := range slices.Concat(fields, declared) {
		of.Fields = append(of.Fields, v1alpha1.FieldConflict{Field: field.Path.String(), Managers: field.Managers})
	}
	slices.SortFunc(of.Fields, func(a, b v1alpha1.FieldConflict) int { return cmp.Compare(a.Field, b.Field) })
	d.plan.Conflicts = append(d.plan.Conflicts, of)
	return nil
}

func compareConflicts(a, b v1alpha1.WorkloadConflict) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

func sortFailures(failures []v1alpha1.ObjectFailure) {
	slices.SortFunc(failures, func(a, b v1alpha1.ObjectFailure) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
}
