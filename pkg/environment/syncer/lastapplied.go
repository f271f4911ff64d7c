// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
)

// keep stores the written objects as last applied. After a complete plan it also stores objects that already matched, and deletes the
// copies of all others.
func (r *syncRun) keep(ctx context.Context, s plan.Input, of planSteps, written []apply.Written, done bool) error {
	var change copies.Change
	for _, w := range written {
		addTo(&change, of.planned[w.Step])
	}
	if done {
		for _, step := range of.all {
			if step.Unchanged {
				addTo(&change, step)
			}
		}
		change.Deleted = append(change.Deleted, r.stale(s, of)...)
	}
	if len(change.Applied)+len(change.Deleted) == 0 && !done {
		return nil
	}
	var err error
	if change.Revision, err = r.heldRevision(ctx, s, done); err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: r.request.Environment.Namespace, Name: r.request.Environment.Name}
	return r.syncer.Copies.Put(ctx, copies.Environment{NamespacedName: name, UID: r.request.Environment.UID}, change)
}

// addTo adds the result of a step to a change.
func addTo(change *copies.Change, step plan.Step) {
	switch {
	case step.Verb == plan.Delete:
		change.Deleted = append(change.Deleted, copies.Key(step.Key))
	case step.Desired != nil:
		change.Applied = append(change.Applied, step.Desired)
	}
}

// isWhole reports whether the run is about all objects of the environment.
func (r *syncRun) isWhole() bool {
	return r.request.Action != v1alpha1.SyncActionCluster && len(r.request.Only) == 0
}

// heldRevision returns the revision that the environment has as a whole, 0 if it has none. An incomplete run, or a run of some
// workloads, leaves no state that a rollback could restore.
func (r *syncRun) heldRevision(ctx context.Context, s plan.Input, done bool) (int64, error) {
	switch {
	case done && r.isWhole():
		if len(r.result.Plan.Failures()) > 0 {
			return 0, nil
		}
		return s.Revision, nil
	case done && len(r.request.Only) == 0:
		return r.syncer.Copies.Revision(ctx, r.request.Environment.UID)
	}
	return 0, nil
}

// stale returns the copies of objects that are no longer desired. Objects that are only missing in the source are still desired.
func (r *syncRun) stale(s plan.Input, of planSteps) []copies.Key {
	if !r.isWhole() {
		return nil
	}
	wanted := sets.New[plan.Key]()
	for _, step := range of.all {
		wanted.Insert(step.Key)
	}
	for _, record := range r.result.Plan.Index {
		key := plan.Key{Name: record.Target.Name}
		key.Kind = string(record.Type)
		wanted.Insert(key)
	}
	var stale []copies.Key
	for key := range s.Base {
		if !wanted.Has(key) {
			stale = append(stale, copies.Key(key))
		}
	}
	return stale
}
