// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/merge"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// Planner computes plans.
type Planner struct {
	Schemas *diff.Schemas
	// Hasher computes the content hashes in the index.
	Hasher Hasher
	// Marks are the labels and annotations of other tools that copies never have.
	Marks objectcopy.Marks
}

// Plan computes what a sync does. It fails if a patch of the environment cannot be applied or an object does not match the
// schema of its type. Then the sync must not write anything.
func (p Planner) Plan(ctx context.Context, in Input) (*Plan, error) {
	d, err := p.draft(&in)
	if err != nil {
		return nil, err
	}
	if err := d.addSteps(ctx); err != nil {
		return nil, err
	}
	if in.Action != v1alpha1.SyncActionCluster {
		d.addRemovals()
	}
	slices.SortFunc(d.plan.Steps, compareSteps)
	d.plan.Warnings = append(d.plan.Warnings, sets.List(d.copies.warnings)...)
	if d.plan.OtherChangesHash, err = d.otherChangesHash(); err != nil {
		return nil, err
	}
	d.plan.Index, err = d.index()
	d.hide()
	return d.plan, err
}

// otherChangesHash computes Plan.OtherChangesHash.
func (d *draft) otherChangesHash() (string, error) {
	var lines []string
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		if s.Action != v1alpha1.SyncActionCatalog || s.ChangeType() == "" || s.isWorkload() || !d.isChanged(s) {
			continue
		}
		hash := ""
		if s.Desired != nil {
			var err error
			if hash, err = Hash(d.hasher, s.Desired); err != nil {
				return "", err
			}
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", s.Verb, s.Key, hash))
	}
	if len(lines) == 0 {
		return "", nil
	}
	return d.hasher.Sum("news", []byte(strings.Join(lines, "\n"))), nil
}

// isChanged reports whether the desired object differs from its base.
func (d *draft) isChanged(s *Step) bool {
	base := d.in.Base[s.Key]
	if s.Desired == nil || base == nil {
		return s.Desired != base
	}
	before, after := base.DeepCopy(), s.Desired.DeepCopy()
	for _, object := range []*unstructured.Unstructured{before, after} {
		unstructured.RemoveNestedField(object.Object, "metadata", "labels", v1alpha1.LabelRevision)
	}
	return !reflect.DeepEqual(before.Object, after.Object)
}

// draft collects the desired objects.
func (p Planner) draft(in *Input) (*draft, error) {
	copies, err := in.newCopier(p.Marks.And(in.Marks))
	if err != nil {
		return nil, err
	}
	d := &draft{
		in: in, copies: copies, merger: merge.Merger{Schemas: p.Schemas, Manager: v1alpha1.FieldManager}, hasher: p.Hasher,
		source: byKey(in.Source), live: byKey(in.Live), previous: byKey(in.Previous), originals: byKey(in.originals()),
		desired: map[Key]*desiredObject{}, reasons: map[Key]string{},
		unpatchedRefs: sets.New[references.Target](), missing: sets.New[Key](), plan: &Plan{},
	}
	if in.Action == v1alpha1.SyncActionCluster {
		return d, d.refresh()
	}
	return d, d.discover()
}

// draft is a plan under construction.
type draft struct {
	in     *Input
	copies *copier
	merger merge.Merger
	hasher Hasher

	source, live, previous map[Key]*unstructured.Unstructured
	// originals are the objects that copies are made of, except the catalog's workloads.
	originals map[Key]*unstructured.Unstructured
	// desired holds the objects that the target must have, and reasons why it must.
	desired map[Key]*desiredObject
	reasons map[Key]string
	// unpatched holds the workloads without the environment's patches.
	unpatched []*unstructured.Unstructured
	// unpatchedRefs holds the references that exist without the environment's patches.
	unpatchedRefs sets.Set[references.Target]
	// missing holds the objects that are referenced and not in the source.
	missing sets.Set[Key]
	// refs holds all references, by target.
	refs []references.Reference
	plan *Plan
}

// add makes the copy of an object desired. It returns nil if the object has no copy.
func (d *draft) add(object *unstructured.Unstructured, reason string) (*desiredObject, error) {
	key := KeyOf(object)
	if w, ok := d.desired[key]; ok {
		return w, nil
	}
	w, omitted, err := d.desiredOf(object)
	if err != nil {
		return nil, err
	}
	if w != nil {
		d.desired[key], d.reasons[key] = w, reason
	} else if key != defaultAccount {
		d.warn(fmt.Sprintf("%s is not copied: %s", key, omitted))
	}
	return w, nil
}

// warn adds a warning, once.
func (d *draft) warn(warning string) {
	if !slices.Contains(d.plan.Warnings, warning) {
		d.plan.Warnings = append(d.plan.Warnings, warning)
	}
}

// isSelected reports whether the sync includes a workload.
func (d *draft) isSelected(key Key) bool {
	return len(d.in.Only) == 0 || slices.Contains(d.in.Only, key.workload())
}

// isMember reports whether a workload of the catalog belongs to the environment. A Branch has only its branchWorkloads.
func (d *draft) isMember(key Key) bool {
	return !d.in.isBranch() || slices.Contains(d.in.Environment.Spec.BranchWorkloads, key.workload())
}
