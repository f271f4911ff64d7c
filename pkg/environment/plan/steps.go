// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	kubefieldpath "github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// stepPlanner plans the steps of desired objects, and lists the objects that it leaves alone although they should change.
type stepPlanner struct {
	in     *Input
	merger *objectMerger
	// live holds Input.Live by key.
	live map[Key]*unstructured.Unstructured

	steps                []Step
	notOurs, terminating []v1alpha1.ObjectFailure
	conflicts            []v1alpha1.WorkloadConflict
}

// planAll plans a step for each desired object.
func (p *stepPlanner) planAll(ctx context.Context, desired map[Key]*desiredObject) error {
	for key, w := range desired {
		step, err := p.plan(ctx, key, w)
		if err != nil {
			return err
		}
		p.steps = append(p.steps, step)
	}
	sortFailures(p.notOurs)
	sortFailures(p.terminating)
	slices.SortFunc(p.conflicts, compareConflicts)
	return nil
}

// plan computes the step of a desired object.
func (p *stepPlanner) plan(ctx context.Context, key Key, w *desiredObject) (Step, error) {
	s := Step{
		Key: key, Namespace: p.in.Environment.Spec.TargetNamespace, Action: p.in.actionOf(key), Verb: Leave, Live: p.live[key], Reason: w.reason,
	}
	if p.in.isBranchedOff(key) {
		s.Reason = "a Branch holds it"
		return s, nil
	}
	if s.Live == nil {
		s.Verb, s.Apply, s.After, s.Desired = Create, w.object, w.object, w.object
		return s, nil
	}
	owner := p.in.ownerOf(s.Live)
	switch {
	case owner == ownerRelated:
		s.Reason = "environment " + s.Live.GetLabels()[v1alpha1.LabelEnvironment] + " holds it"
		return s, nil
	case owner == ownerForeign && !p.in.Force:
		s.Reason = "the environment has not written it"
		p.notOurs = append(p.notOurs, p.failTarget(key, v1alpha1.ReasonNotOurs,
			"is there, and the environment has not written it: force takes it over"))
		return s, nil
	case s.Live.GetDeletionTimestamp() != nil:
		s.Reason = "it is being deleted"
		p.terminating = append(p.terminating, p.failTarget(key, v1alpha1.ReasonBeingDeleted, "is being deleted: it is written when it is gone"))
		return s, nil
	}
	return p.merge(ctx, s, w, owner)
}

// merge completes the step of a live object that must match the desired one.
func (p *stepPlanner) merge(ctx context.Context, s Step, w *desiredObject, owner owner) (Step, error) {
	v := p.merger.versions(s.Key, w, s.Live, owner)
	s.Desired = v.Desired
	done, err := p.merger.outcomeOf(ctx, s.Key, v, owner)
	if err == nil && keepServerValues(&v, done.changes) {
		done, err = p.merger.outcomeOf(ctx, s.Key, v, owner)
	}
	switch {
	case err != nil:
		return Step{}, err
	case len(done.conflicts) > 0:
		s.Reason, s.Desired, s.Offered = "a user must decide about fields that were changed here and in the catalog", nil, cmp.Or(v.Unpatched, v.Desired)
		conflict, err := p.merger.conflictOf(ctx, s.Key, w, done.conflicts)
		if err != nil {
			return Step{}, err
		}
		p.conflicts = append(p.conflicts, conflict)
	case !slices.ContainsFunc(done.changes, isContent):
		s.Unchanged, s.Reason = true, "it is as it should be"
	default:
		s.Verb, s.Changes, s.Removal, s.Apply, s.After = Update, done.changes, done.removal, done.apply, done.after
	}
	return s, nil
}

// revisionLabel is the label with the revision that an object was last written for. A different revision alone is no reason to write the
// object, and is not shown as a change.
var (
	revisionLabel     = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "labels", v1alpha1.LabelRevision))
	revisionLabelPath = kubefieldpath.Of(fieldpath.MakePathOrDie("metadata", "labels", v1alpha1.LabelRevision))
)

func isContent(change diff.Difference) bool { return !change.Path.Equal(revisionLabelPath) }

// failTarget returns the failure of an object that is not written to the target.
func (p *stepPlanner) failTarget(key Key, reason, why string) v1alpha1.ObjectFailure {
	namespace := p.in.Environment.Spec.TargetNamespace
	return v1alpha1.ObjectFailure{
		Type: key.Kind, Namespace: namespace, Name: key.Name, Reason: reason,
		Message: fmt.Sprintf("%s '%s' of %s %s", key.Kind, key.Name, namespace, why),
	}
}
