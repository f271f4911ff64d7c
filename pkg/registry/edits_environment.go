// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// environmentEdits record the pending edits of an environment, and the user by whose permissions its automatic syncs
// run.
func environmentEdits() *edits[*configbutler.Environment] {
	return &edits[*configbutler.Environment]{
		admit: func(stored *configbutler.Environment, actor string) error {
			waiting := stored.Status.PendingEdits
			return admitEdits(len(waiting), newestEdit(waiting).Actor, actor, "environment")
		},
		record: func(obj, old *configbutler.Environment, e edit) {
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

// newestEdit returns the newest pending edit, or an empty one if there is none.
func newestEdit(waiting []configbutler.EnvironmentEdit) configbutler.EnvironmentEdit {
	if len(waiting) == 0 {
		return configbutler.EnvironmentEdit{}
	}
	return waiting[len(waiting)-1]
}

// withEdit adds an edit to the pending ones. Consecutive edits of one user are merged into one with all their fields.
func withEdit(waiting []configbutler.EnvironmentEdit, e configbutler.EnvironmentEdit) []configbutler.EnvironmentEdit {
	if newest := newestEdit(waiting); newest.Actor == e.Actor {
		waiting = waiting[:len(waiting)-1]
		e.Fields = slices.Concat(newest.Fields, e.Fields)
		slices.Sort(e.Fields)
		e.Fields = slices.Compact(e.Fields)
	}
	return slices.Concat(waiting, []configbutler.EnvironmentEdit{e})
}

// changedFields returns the top-level fields of the spec that differ, by their JSON names. It returns none for a
// creation.
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

// specFields returns the fields of the spec that are set, by their JSON names.
func specFields(obj *configbutler.Environment) map[string]any {
	spec := &v1alpha1.EnvironmentSpec{}
	if err := v1alpha1.Convert_configbutler_EnvironmentSpec_To_v1alpha1_EnvironmentSpec(&obj.Spec, spec, nil); err != nil {
		return nil // The same conversion stores it.
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil // What was decoded from JSON can be encoded again.
	}
	return fields
}

// automatedBy returns the user by whose permissions automatic syncs run after an edit: the one who enabled them, or who
// last extended what they do. It returns nil while they are disabled or if the author is unknown; then no automatic
// sync starts.
func automatedBy(obj, old *configbutler.Environment, e edit) *configbutler.AutomatedBy {
	switch {
	case !obj.Spec.AutoSync:
		return nil
	case old != nil && old.Spec.AutoSync && automateNoMore(obj, old):
		return old.Status.AutomatedBy
	}
	return e.author()
}

// automateNoMore reports whether automatic syncs do nothing after an edit that they did not do before.
func automateNoMore(obj, old *configbutler.Environment) bool {
	now, err := versionedEnvironment(obj)
	before, beforeErr := versionedEnvironment(old)
	return err == nil && beforeErr == nil && access.AutomaticSyncsDoNoMore(&now.Spec, &before.Spec)
}
