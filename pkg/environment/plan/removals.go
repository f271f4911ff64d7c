// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"

// removals delete what the environment has written and what is not wanted any more.
func (d *draft) removals() {
	for key, live := range d.live {
		if !isWritten(key.GroupKind) || d.wanted[key] != nil || !Owns(d.Environment, live) || !d.mayGo(key) {
			continue
		}
		s := Step{
			Key: key, Namespace: d.Environment.Spec.TargetNamespace, Action: v1alpha1.SyncActionCatalog, Verb: Delete,
			Live: live, Reason: "nothing needs it any more",
		}
		switch {
		case d.isWithheld(key):
			s.Verb, s.Reason = Leave, "it is not read in the source, and spec.include names it"
		case d.Withheld.Has(services) && !key.isWorkload():
			s.Verb, s.Reason = Leave, "what needs it is not known while Services of the source are not read"
		case d.absent.Has(key) && d.Withheld.Has(key.GroupKind):
			s.Verb, s.Reason = Leave, "it is not read in the source, and something refers to it"
		case d.absent.Has(key):
			s.Verb, s.Action, s.Reason = Leave, d.actionOf(key), "the source does not have it, and something refers to it"
		case live.GetDeletionTimestamp() != nil:
			s.Verb, s.Reason = Leave, "it is being deleted"
		case key.isWorkload():
			s.Reason = "the catalog does not offer it"
		}
		d.plan.Steps = append(d.plan.Steps, s)
	}
}

// mayGo says whether an object that is not wanted is one to decide about. Of what workloads share, it is known only when all of them
// are looked at.
func (d *draft) mayGo(key Key) bool {
	if len(d.Only) == 0 {
		return !d.isBranchedOff(key)
	}
	return key.isWorkload() && d.isNamed(key) && !d.isBranchedOff(key)
}
