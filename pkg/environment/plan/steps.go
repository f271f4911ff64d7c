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

// steps decides about everything that is wanted.
func (d *draft) steps(ctx context.Context) error {
	for key, w := range d.wanted {
		step, err := d.step(ctx, key, w)
		if err != nil {
			return err
		}
		d.plan.Steps = append(d.plan.Steps, step)
	}
	sortFailures(d.plan.NotOurs)
	sortFailures(d.plan.Leaving)
	slices.SortFunc(d.plan.Conflicts, compareConflicts)
	return nil
}

// step decides about an object that is wanted.
func (d *draft) step(ctx context.Context, key Key, w *wanted) (Step, error) {
	s := Step{
		Key: key, Namespace: d.Environment.Spec.TargetNamespace, Action: d.actionOf(key), Verb: Leave, Live: d.live[key], Reason: d.why[key],
	}
	if d.isBranchedOff(key) {
		s.Reason = "a Branch holds it"
		return s, nil
	}
	if s.Live == nil {
		s.Verb, s.Apply, s.After, s.Desired = Create, w.desired, w.desired, w.desired
		return s, nil
	}
	owner := d.ownerOf(s.Live)
	switch {
	case owner == relatives:
		s.Reason = "environment " + s.Live.GetLabels()[v1alpha1.LabelEnvironment] + " holds it"
		return s, nil
	case owner == others && !d.Force:
		s.Reason = "the environment has not written it"
		d.plan.NotOurs = append(d.plan.NotOurs, d.failure(key, v1alpha1.ReasonNotOurs,
			"is there, and the environment has not written it: force takes it over"))
		return s, nil
	case s.Live.GetDeletionTimestamp() != nil:
		s.Reason = "it is being deleted"
		d.plan.Leaving = append(d.plan.Leaving, d.failure(key, v1alpha1.ReasonBeingDeleted, "is being deleted: it is written when it is gone"))
		return s, nil
	}
	return d.merged(ctx, s, w, owner)
}

// merged is a step that brings a live object to what is wanted of it.
func (d *draft) merged(ctx context.Context, s Step, w *wanted, owner owner) (Step, error) {
	v := d.versions(s.Key, w, s.Live, owner)
	s.Desired = v.Desired
	done, err := d.outcome(ctx, s.Key, v, owner)
	if err == nil && settle(&v, done.changes) {
		done, err = d.outcome(ctx, s.Key, v, owner)
	}
	switch {
	case err != nil:
		return Step{}, err
	case len(done.conflicts) > 0:
		s.Reason, s.Desired = "somebody has to decide about fields that were changed here and in the catalog", nil
		return s, d.conflict(ctx, s.Key, w, done.conflicts)
	case !slices.ContainsFunc(done.changes, isContent):
		s.Unchanged, s.Reason = true, "it is as it should be"
	default:
		s.Verb, s.Changes, s.Removal, s.Apply, s.After = Update, done.changes, done.removal, done.apply, done.after
	}
	return s, nil
}

// revisionAt is the label of the revision that an object was last written for. It alone is no reason to write,
// and people who ask for the differences are not shown it.
var revisionAt = kubefieldpath.Of(fieldpath.MakePathOrDie("metadata", "labels", v1alpha1.LabelRevision))

func isContent(change diff.Difference) bool { return !change.Path.Equal(revisionAt) }

// isScaled says whether the number of replicas is what the autoscaler that comes with a workload has set.
func (d *draft) isScaled(key Key, live *unstructured.Unstructured) bool {
	if slices.Contains(diff.ManagersOf(live).Of(fieldpath.MakePathOrDie("spec", "replicas")), v1alpha1.FieldManager) {
		return false
	}
	for other, autoscaler := range d.wanted {
		if other.GroupKind != autoscalers {
			continue
		}
		if of, ok := scaled(autoscaler.desired); ok && of == key {
			return true
		}
	}
	return false
}

// actionOf says which action a step belongs to: what the index names is what the action Cluster brings.
func (d *draft) actionOf(key Key) v1alpha1.SyncAction {
	switch {
	case d.Action == v1alpha1.SyncActionCluster:
		return v1alpha1.SyncActionCluster
	case d.Action == v1alpha1.SyncActionCatalog || !d.isIndexed(key):
		return v1alpha1.SyncActionCatalog
	}
	return v1alpha1.SyncActionCluster
}

// failure says why an object of the target is not written.
func (d *draft) failure(key Key, reason, why string) v1alpha1.ObjectFailure {
	namespace := d.Environment.Spec.TargetNamespace
	return v1alpha1.ObjectFailure{
		Type: key.Kind, Namespace: namespace, Name: key.Name, Reason: reason,
		Message: fmt.Sprintf("%s '%s' of %s %s", key.Kind, key.Name, namespace, why),
	}
}
