// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// removals plans the deletions of objects that the environment has written and that are no longer desired.
type removals struct {
	in        *Input
	selection *selection
	report    *report
}

// steps returns the steps of the live objects that are not desired.
func (r removals) steps(live map[Key]*unstructured.Unstructured) []Step {
	var steps []Step
	for key, object := range live {
		if isWritten(key.GroupKind) && r.selection.desired[key] == nil && Owns(r.in.Environment, object) && r.isRemovable(key) {
			steps = append(steps, r.step(key, object))
		}
	}
	return steps
}

// step returns the deletion of an object, or the reason to leave it.
func (r removals) step(key Key, live *unstructured.Unstructured) Step {
	s := Step{
		Key: key, Namespace: r.in.Environment.Spec.TargetNamespace, Action: v1alpha1.SyncActionCatalog, Verb: Delete,
		Live: live, Reason: "nothing needs it any more",
	}
	isMissing := r.selection.missing.Has(key)
	_, isDenied := r.report.denialOf(key)
	switch {
	case r.in.isDeniedInclude(key):
		s.Verb, s.Reason = Leave, "it is not read in the source, and spec.include names it"
	case r.in.Denied.Has(services) && !key.isWorkload():
		s.Verb, s.Reason = Leave, "what needs it is not known while Services of the source are not read"
	case isMissing && isDenied:
		s.Verb, s.Reason = Leave, "it is not read in the source, and something refers to it"
	case isMissing:
		s.Verb, s.Action, s.Reason = Leave, r.in.actionOf(key), "the source does not have it, and something refers to it"
	case live.GetDeletionTimestamp() != nil:
		s.Verb, s.Reason = Leave, "it is being deleted"
	case key.isWorkload():
		s.Reason = "the catalog does not offer it"
	}
	return s
}

// isRemovable reports whether the sync decides about an object that is not desired. A sync of some workloads cannot decide
// about objects that workloads share.
func (r removals) isRemovable(key Key) bool {
	if len(r.in.Only) == 0 {
		return !r.in.isBranchedOff(key)
	}
	return key.isWorkload() && r.in.isSelected(key) && !r.in.isBranchedOff(key)
}
