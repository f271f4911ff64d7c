// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"

// addRemovals adds deletions of objects that the environment has written and that are no longer desired.
func (d *draft) addRemovals() {
	for key, live := range d.live {
		if !isWritten(key.GroupKind) || d.desired[key] != nil || !Owns(d.in.Environment, live) || !d.isRemovable(key) {
			continue
		}
		s := Step{
			Key: key, Namespace: d.in.Environment.Spec.TargetNamespace, Action: v1alpha1.SyncActionCatalog, Verb: Delete,
			Live: live, Reason: "nothing needs it any more",
		}
		switch {
		case d.isDenied(key):
			s.Verb, s.Reason = Leave, "it is not read in the source, and spec.include names it"
		case d.in.Denied.Has(services) && !key.isWorkload():
			s.Verb, s.Reason = Leave, "what needs it is not known while Services of the source are not read"
		case d.missing.Has(key) && d.in.Denied.Has(key.GroupKind):
			s.Verb, s.Reason = Leave, "it is not read in the source, and something refers to it"
		case d.missing.Has(key):
			s.Verb, s.Action, s.Reason = Leave, d.actionOf(key), "the source does not have it, and something refers to it"
		case live.GetDeletionTimestamp() != nil:
			s.Verb, s.Reason = Leave, "it is being deleted"
		case key.isWorkload():
			s.Reason = "the catalog does not offer it"
		}
		d.plan.Steps = append(d.plan.Steps, s)
	}
}

// isRemovable reports whether the sync decides about an object that is not desired. A sync of some workloads cannot decide
// about objects that workloads share.
func (d *draft) isRemovable(key Key) bool {
	if len(d.in.Only) == 0 {
		return !d.in.isBranchedOff(key)
	}
	return key.isWorkload() && d.isSelected(key) && !d.in.isBranchedOff(key)
}
