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

// keep has the copies hold what was written; once all is done, also what was as it should be, and no more than that.
func (r *running) keep(ctx context.Context, s plan.Input, of steps, written []apply.Written, done bool) error {
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
	name := types.NamespacedName{Namespace: r.Environment.Namespace, Name: r.Environment.Name}
	return r.Copies.Put(ctx, copies.Environment{NamespacedName: name, UID: r.Environment.UID}, change)
}

// addTo takes up what a step has done.
func addTo(change *copies.Change, step plan.Step) {
	switch {
	case step.Verb == plan.Delete:
		change.Deleted = append(change.Deleted, copies.Key(step.Key))
	case step.Desired != nil:
		change.Applied = append(change.Applied, step.Desired)
	}
}

// isWhole says whether a plan is about all that the environment has.
func (r *running) isWhole() bool { return r.Action != v1alpha1.SyncActionCluster && len(r.Only) == 0 }

// heldRevision is the one that the environment has as a whole, 0 if it has none: what an attempt has written that did not come to
// its end or left something out, or what was brought of some workloads, is no state to go back to.
func (r *running) heldRevision(ctx context.Context, s plan.Input, done bool) (int64, error) {
	switch {
	case done && r.isWhole():
		if len(r.result.Plan.Failures()) > 0 {
			return 0, nil
		}
		return s.Revision, nil
	case done && len(r.Only) == 0:
		return r.Copies.Revision(ctx, r.Environment.UID)
	}
	return 0, nil
}

// stale are copies of what is neither wanted nor there any more. What only the source lacks for now is still wanted.
func (r *running) stale(s plan.Input, of steps) []copies.Key {
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
