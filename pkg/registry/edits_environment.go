// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// environmentEdits keep the changes of an environment that have not been dealt with yet, and who answers for its automatic
// syncs.
func environmentEdits() *edits[*configbutler.Environment] {
	return &edits[*configbutler.Environment]{
		admit: func(stored *configbutler.Environment, actor string) error {
			waiting := stored.Status.PendingEdits
			return admitEdits(len(waiting), newestEdit(waiting).Actor, actor, "environment")
		},
		note: func(obj, old *configbutler.Environment, e edit) {
			obj.Status.AutomatedBy = automatedBy(obj, old, e)
			if e.user != nil {
				obj.Status.PendingEdits = withEdit(obj.Status.PendingEdits, configbutler.EnvironmentEdit{
					Generation: e.generation, Actor: e.user.GetName(), UID: types.UID(e.user.GetUID()), Groups: slices.Clone(e.user.GetGroups()),
					Time: e.time, Fields: changedFields(obj, old),
				})
			}
		},
	}
}

// newestEdit is the last that was made of those that wait, of nobody when none does.
func newestEdit(waiting []configbutler.EnvironmentEdit) configbutler.EnvironmentEdit {
	if len(waiting) == 0 {
		return configbutler.EnvironmentEdit{}
	}
	return waiting[len(waiting)-1]
}

// withEdit adds an edit to those that wait. Those that a user makes in a row become one, of all their fields.
func withEdit(waiting []configbutler.EnvironmentEdit, e configbutler.EnvironmentEdit) []configbutler.EnvironmentEdit {
	if newest := newestEdit(waiting); newest.Actor == e.Actor {
		waiting = waiting[:len(waiting)-1]
		e.Fields = slices.Concat(newest.Fields, e.Fields)
		slices.Sort(e.Fields)
		e.Fields = slices.Compact(e.Fields)
	}
	return slices.Concat(waiting, []configbutler.EnvironmentEdit{e})
}

// changedFields are the fields of the spec in which an environment differs from what it was, as users write them. A creation
// changes none.
func changedFields(obj, old *configbutler.Environment) []string {
	if old == nil {
		return nil
	}
	now, before := specFields(obj), specFields(old)
	for name, value := range before {
		if after, there := now[name]; there && equality.Semantic.DeepEqual(value, after) {
			delete(now, name)
		} else {
			now[name] = nil
		}
	}
	return slices.Sorted(maps.Keys(now))
}

// specFields are the fields of the spec that are set, by their names.
func specFields(obj *configbutler.Environment) map[string]any {
	spec := &v1alpha1.EnvironmentSpec{}
	if err := v1alpha1.Convert_configbutler_EnvironmentSpec_To_v1alpha1_EnvironmentSpec(&obj.Spec, spec, nil); err != nil {
		return nil // The same conversion stores it.
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil // Whatever has been decoded from JSON can be written as JSON.
	}
	return fields
}

// automatedBy is who answers for the automatic syncs of an environment after a change: whoever turned them on, or has them do
// more since. Nobody does while they are off, or when nobody is known to have made the change; then none is begun.
func automatedBy(obj, old *configbutler.Environment, e edit) *configbutler.AutomatedBy {
	switch {
	case !obj.Spec.AutoSync:
		return nil
	case old != nil && old.Spec.AutoSync && doesNoMore(&obj.Spec, &old.Spec):
		return old.Status.AutomatedBy
	}
	return e.author()
}

// doesNoMore says whether automatic syncs do nothing that they did not do before, on nobody else's permissions. Everything
// counts but what is left out here: when they begin, which revision they keep to, what can be gone back to and how the
// environment ends; that less is created or written; and workloads that are taken out of a branch, and objects out of include.
func doesNoMore(spec, before *configbutler.EnvironmentSpec) bool {
	was := before.DeepCopy()
	was.SyncWindows, was.PinnedRevision, was.HistoryLimit = spec.SyncWindows, spec.PinnedRevision, spec.HistoryLimit
	was.TTL, was.DeletionPolicy = spec.TTL, spec.DeletionPolicy
	if spec.Shadow {
		was.Shadow = true
	}
	if !spec.CreateNamespace {
		was.CreateNamespace = false
	}
	was.BranchWorkloads = slices.DeleteFunc(was.BranchWorkloads, func(workload configbutler.WorkloadReference) bool {
		return !slices.Contains(spec.BranchWorkloads, workload)
	})
	was.Include = slices.DeleteFunc(was.Include, func(object configbutler.IncludedObject) bool {
		return !slices.Contains(spec.Include, object)
	})
	return equality.Semantic.DeepEqual(spec, was)
}
