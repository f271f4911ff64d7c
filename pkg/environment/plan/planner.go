// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"slices"

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
	// mergeAll merges settled objects, too. Tests set it, because the result must be the same.
	mergeAll bool
}

// Plan computes what a sync does. It fails if a patch of the environment cannot be applied or an object does not match the
// schema of its type. Then the sync must not write anything.
func (p Planner) Plan(ctx context.Context, in Input) (*Plan, error) {
	c, err := p.collect(&in)
	if err != nil {
		return nil, err
	}
	steps, err := p.planSteps(ctx, &in, c)
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		Steps: steps.steps, NotOurs: steps.notOurs, Terminating: steps.terminating, Conflicts: steps.conflicts,
		Missing: c.report.missing, NotCopied: c.report.notCopied,
		Warnings: append(c.report.warnings, sets.List(c.copies.warnings)...),
	}
	if plan.OtherChangesHash, err = otherChangesHash(p.Hasher, plan.Steps, in.Base); err != nil {
		return nil, err
	}
	index := &indexBuilder{
		in: &in, copies: c.copies, hasher: p.Hasher, source: c.objects.source, selection: c.selection, consent: c.report.consent,
	}
	plan.Index, err = index.build()
	plan.hide()
	return plan, err
}

// collect selects the desired objects, and reports what is missing. The results are in the selection and the report of the
// collector.
func (p Planner) collect(in *Input) (*collector, error) {
	copies, err := in.newCopier(p.Marks.And(in.Marks))
	if err != nil {
		return nil, err
	}
	c := &collector{
		in: in, copies: copies, selection: newSelection(),
		objects: &inputObjects{source: byKey(in.Source), live: byKey(in.Live), originals: byKey(in.originals())},
		report:  &report{sourceNamespace: in.SourceNamespace, denied: in.Denied},
	}
	if c.report.consent, err = p.consentOf(in); err != nil {
		return nil, err
	}
	c.objects.exclude(c.report.consent)
	if in.Action == v1alpha1.SyncActionCluster {
		return c, refresh(in, c)
	}
	routes := &routeCollector{in: in, objects: c.objects, selection: c.selection, report: c.report, collector: c}
	catalog := &discovery{in: in, objects: c.objects, selection: c.selection, report: c.report, collector: c, routes: routes}
	if err := catalog.run(); err != nil || in.hasSnapshot() {
		return c, err
	}
	missingCheck{in: in, objects: c.objects, selection: c.selection, report: c.report}.run()
	permissions := permissionCheck{in: in, live: c.objects.live, accounts: c.selection.serviceAccounts(), report: c.report}
	return c, permissions.run()
}

// planSteps plans the steps of the desired objects and the deletions, in the order of execution.
func (p Planner) planSteps(ctx context.Context, in *Input, c *collector) (*stepPlanner, error) {
	merger := &objectMerger{
		in: in, merger: merge.Merger{Schemas: p.Schemas, Manager: v1alpha1.FieldManager}, mergeAll: p.mergeAll, target: c.copies.target,
		previous: byKey(in.Previous), autoscaled: autoscaledBy(c.selection.desired),
	}
	planner := &stepPlanner{in: in, merger: merger, live: c.objects.live}
	if err := planner.planAll(ctx, c.selection.desired); err != nil {
		return nil, err
	}
	if in.Action != v1alpha1.SyncActionCluster {
		planner.steps = append(planner.steps, removals{in: in, selection: c.selection, report: c.report}.steps(c.objects.live)...)
	}
	slices.SortFunc(planner.steps, compareSteps)
	return planner, nil
}
