// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/merge"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
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
	merger := &objectMerger{
		in: &in, merger: merge.Merger{Schemas: p.Schemas, Manager: v1alpha1.FieldManager}, target: d.copies.target,
		previous: byKey(in.Previous), autoscaled: autoscaledBy(d.desired),
	}
	steps := &stepPlanner{in: &in, merger: merger, live: d.live}
	if err := steps.planAll(ctx, d.desired); err != nil {
		return nil, err
	}
	if in.Action != v1alpha1.SyncActionCluster {
		steps.steps = append(steps.steps, removals{&in, d.selection}.steps(d.live)...)
	}
	slices.SortFunc(steps.steps, compareSteps)
	d.plan.Steps, d.plan.NotOurs, d.plan.Terminating, d.plan.Conflicts = steps.steps, steps.notOurs, steps.terminating, steps.conflicts
	d.plan.Warnings = append(d.plan.Warnings, sets.List(d.copies.warnings)...)
	if d.plan.OtherChangesHash, err = otherChangesHash(p.Hasher, d.plan.Steps, in.Base); err != nil {
		return nil, err
	}
	index := &indexBuilder{in: &in, copies: d.copies, hasher: p.Hasher, source: d.source, selection: d.selection}
	d.plan.Index, err = index.build()
	d.plan.hide()
	return d.plan, err
}

// draft collects the desired objects.
func (p Planner) draft(in *Input) (*draft, error) {
	copies, err := in.newCopier(p.Marks.And(in.Marks))
	if err != nil {
		return nil, err
	}
	d := &draft{
		in: in, copies: copies, selection: newSelection(), plan: &Plan{},
		source: byKey(in.Source), live: byKey(in.Live), originals: byKey(in.originals()),
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

	source, live map[Key]*unstructured.Unstructured
	// originals are the objects that copies are made of, except the catalog's workloads.
	originals map[Key]*unstructured.Unstructured
	// unpatched holds the workloads without the environment's patches.
	unpatched []*unstructured.Unstructured
	*selection
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
		w.reason = reason
		d.desired[key] = w
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
