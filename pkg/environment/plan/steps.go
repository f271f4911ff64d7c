// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	kubefieldpath "github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// addSteps adds a step for each desired object.
func (d *draft) addSteps(ctx context.Context) error {
	for key, w := range d.desired {
		step, err := d.planStep(ctx, key, w)
		if err != nil {
			return err
		}
		d.plan.Steps = append(d.plan.Steps, step)
	}
	sortFailures(d.plan.NotOurs)
	sortFailures(d.plan.Terminating)
	slices.SortFunc(d.plan.Conflicts, compareConflicts)
	return nil
}

// planStep computes the step of a desired object.
func (d *draft) planStep(ctx context.Context, key Key, w *desiredObject) (Step, error) {
	s := Step{
		Key: key, Namespace: d.in.Environment.Spec.TargetNamespace, Action: d.actionOf(key), Verb: Leave, Live: d.live[key], Reason: d.reasons[key],
	}
	if d.in.isBranchedOff(key) {
		s.Reason = "a Branch holds it"
		return s, nil
	}
	if s.Live == nil {
		s.Verb, s.Apply, s.After, s.Desired = Create, w.object, w.object, w.object
		return s, nil
	}
	owner := d.in.ownerOf(s.Live)
	switch {
	case owner == ownerRelated:
		s.Reason = "environment " + s.Live.GetLabels()[v1alpha1.LabelEnvironment] + " holds it"
		return s, nil
	case owner == ownerForeign && !d.in.Force:
		s.Reason = "the environment has not written it"
		d.plan.NotOurs = append(d.plan.NotOurs, d.failTarget(key, v1alpha1.ReasonNotOurs,
			"is there, and the environment has not written it: force takes it over"))
		return s, nil
	case s.Live.GetDeletionTimestamp() != nil:
		s.Reason = "it is being deleted"
		d.plan.Terminating = append(d.plan.Terminating, d.failTarget(key, v1alpha1.ReasonBeingDeleted, "is being deleted: it is written when it is gone"))
		return s, nil
	}
	return d.mergeStep(ctx, s, w, owner)
}

// mergeStep completes the step of a live object that must match the desired one.
func (d *draft) mergeStep(ctx context.Context, s Step, w *desiredObject, owner owner) (Step, error) {
	v := d.versions(s.Key, w, s.Live, owner)
	s.Desired = v.Desired
	done, err := d.outcomeOf(ctx, s.Key, v, owner)
	if err == nil && keepServerValues(&v, done.changes) {
		done, err = d.outcomeOf(ctx, s.Key, v, owner)
	}
	switch {
	case err != nil:
		return Step{}, err
	case len(done.conflicts) > 0:
		s.Reason, s.Desired = "somebody has to decide about fields that were changed here and in the catalog", nil
		return s, d.addConflict(ctx, s.Key, w, done.conflicts)
	case !slices.ContainsFunc(done.changes, isContent):
		s.Unchanged, s.Reason = true, "it is as it should be"
	default:
		s.Verb, s.Changes, s.Removal, s.Apply, s.After = Update, done.changes, done.removal, done.apply, done.after
	}
	return s, nil
}

// revisionLabelPath is the label with the revision that an object was last written for. A different revision alone is no
// reason to write the object, and is not shown as a change.
var revisionLabelPath = kubefieldpath.Of(fieldpath.MakePathOrDie("metadata", "labels", v1alpha1.LabelRevision))

func isContent(change diff.Difference) bool { return !change.Path.Equal(revisionLabelPath) }

// isScaledByAutoscaler reports whether the autoscaler of a workload has set its number of replicas.
func (d *draft) isScaledByAutoscaler(key Key, live *unstructured.Unstructured) bool {
	if slices.Contains(diff.ManagersOf(live).Of(fieldpath.MakePathOrDie("spec", "replicas")), v1alpha1.FieldManager) {
		return false
	}
	for other, autoscaler := range d.desired {
		if other.GroupKind != autoscalers {
			continue
		}
		if of, ok := scaleTarget(autoscaler.object); ok && of == key {
			return true
		}
	}
	return false
}

// actionOf returns the action that a step belongs to. Objects of the index belong to the action Cluster.
func (d *draft) actionOf(key Key) v1alpha1.SyncAction {
	switch {
	case d.in.Action == v1alpha1.SyncActionCluster:
		return v1alpha1.SyncActionCluster
	case d.in.Action == v1alpha1.SyncActionCatalog || !d.isIndexed(key):
		return v1alpha1.SyncActionCatalog
	}
	return v1alpha1.SyncActionCluster
}

// failTarget returns the failure of an object that is not written to the target.
func (d *draft) failTarget(key Key, reason, why string) v1alpha1.ObjectFailure {
	namespace := d.in.Environment.Spec.TargetNamespace
	return v1alpha1.ObjectFailure{
		Type: key.Kind, Namespace: namespace, Name: key.Name, Reason: reason,
		Message: fmt.Sprintf("%s '%s' of %s %s", key.Kind, key.Name, namespace, why),
	}
}
