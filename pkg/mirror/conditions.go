// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// progressing is the verdict of what is on its way.
func progressing(message string) verdict {
	return verdict{v1alpha1.ReasonProgressing, message}
}

// conditionSet brings the conditions of one object to what is found now: those set stay
// or are added, the others of the mirror go.
type conditionSet struct {
	conditions *[]metav1.Condition
	generation int64
	kept       []string
}

func conditionsFor(conditions *[]metav1.Condition, generation int64) *conditionSet {
	return &conditionSet{conditions: conditions, generation: generation}
}

func (s *conditionSet) set(kind string, status bool, reason, message string) {
	state := metav1.ConditionFalse
	if status {
		state = metav1.ConditionTrue
	}
	s.put(kind, state, reason, message)
}

func (s *conditionSet) put(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(s.conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: printable.Message(message), ObservedGeneration: s.generation,
	})
	s.kept = append(s.kept, kind)
}

// ready sets Ready and, in the way of kstatus, Reconciling or Stalled while they are true.
func (s *conditionSet) ready(v verdict, whenReady string) {
	if v.ok() {
		s.set(v1alpha1.ConditionReady, true, v1alpha1.ReasonSucceeded, whenReady)
		return
	}
	s.notReady(v, v.reason)
}

// notReady is ready for an object that is not. cause is the reason that says whether the server goes on by itself: that of
// another object where v is about one.
func (s *conditionSet) notReady(v verdict, cause string) {
	s.set(v1alpha1.ConditionReady, false, v.reason, v.message)
	if cause == v1alpha1.ReasonProgressing {
		s.set(v1alpha1.ConditionReconciling, true, v.reason, v.message)
	} else if stalls(cause) {
		s.set(v1alpha1.ConditionStalled, true, v.reason, v.message)
	}
}

// stalls says whether somebody has to change something before the object can be ready.
func stalls(reason string) bool {
	switch reason {
	case v1alpha1.ReasonLeaseHeldElsewhere, v1alpha1.ReasonRepositoryUnreachable, v1alpha1.ReasonPushFailed, v1alpha1.ReasonSuspended,
		v1alpha1.ReasonDiscoveryFailed, v1alpha1.ReasonWatchFailed:
		return false
	}
	return true
}

// access sets AccessDenied by the verdict about who admits the object; whenGranted is the message when they do.
func (s *conditionSet) access(v verdict, whenGranted string) {
	switch v.reason {
	case "":
		s.set(v1alpha1.ConditionAccessDenied, false, v1alpha1.ReasonAccessGranted, whenGranted)
	case v1alpha1.ReasonAccessNotGranted:
		s.set(v1alpha1.ConditionAccessDenied, true, v.reason, v.message)
	default: // what would have to admit it is not there
		s.put(v1alpha1.ConditionAccessDenied, metav1.ConditionUnknown, v.reason, v.message)
	}
}

// ownership sets OwnershipConflict once the folder's marker has been looked for.
func (s *conditionSet) ownership(f facts) {
	switch {
	case !f.ownerKnown:
	case f.conflict != "":
		s.set(v1alpha1.ConditionOwnershipConflict, true, v1alpha1.ReasonOwnedByAnother, f.conflict)
	case f.owner == nil:
		s.set(v1alpha1.ConditionOwnershipConflict, false, v1alpha1.ReasonUnclaimed, "The folder has no marker; the next commit writes one")
	default:
		s.set(v1alpha1.ConditionOwnershipConflict, false, v1alpha1.ReasonOwned, "The marker in the folder names this GitDestination")
	}
}

// authors sets AuthorsReported. What was told before stays while nothing is known yet.
func (s *conditionSet) authors(r authorReports) {
	switch {
	case r.known:
		s.set(v1alpha1.ConditionAuthorsReported, r.verdict.ok(), cmp.Or(r.verdict.reason, v1alpha1.ReasonReported),
			cmp.Or(r.verdict.message, "API servers report who makes changes"))
	case r.expected:
		s.kept = append(s.kept, v1alpha1.ConditionAuthorsReported)
	}
}

// settle removes the conditions of the mirror's that were not set; those of others stay.
func (s *conditionSet) settle() {
	*s.conditions = slices.DeleteFunc(*s.conditions, func(c metav1.Condition) bool {
		return slices.Contains(ownConditions, c.Type) && !slices.Contains(s.kept, c.Type)
	})
}

// ownConditions are the types that the mirror sets.
var ownConditions = []string{
	v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
	v1alpha1.ConditionAccessDenied, v1alpha1.ConditionOwnershipConflict, v1alpha1.ConditionSecretsEncrypted,
	v1alpha1.ConditionAuthorsReported,
}

// destinationConditions are those of a GitDestination as it is now. failure is what keeps
// it back.
func destinationConditions(d *destination, failure error, reports authorReports, conditions []metav1.Condition) []metav1.Condition {
	p := d.plan.Load()
	conditions = slices.Clone(conditions)
	set := conditionsFor(&conditions, p.object.Generation)
	set.ready(d.verdict(p, failure), "The folder holds what the rules select")
	set.access(p.access(), "The GitRepoConfig admits the GitDestination")
	set.ownership(d.record.current())
	set.set(v1alpha1.ConditionSecretsEncrypted, p.secrets.encrypted, p.secrets.reason, p.secrets.message)
	set.authors(reports)
	set.settle()
	return conditions
}

// access is the verdict about whether the repository admits the destination.
func (p *destinationPlan) access() verdict {
	if p.repository == nil {
		return p.verdict
	}
	return verdict{}
}

// verdict says whether the destination holds what its rules select.
func (d *destination) verdict(p *destinationPlan, failure error) verdict {
	writable := p.writable(failure)
	switch {
	case !p.verdict.ok():
		return p.verdict
	case !writable.ok():
		return writable
	case !d.record.current().served:
		return progressing("The branch is being read")
	case d.seeds.outstanding():
		return progressing("The cluster is being compared with the folder")
	}
	return verdict{}
}

// writable says whether changes reach the folder. failure is what keeps the destination back.
func (p *destinationPlan) writable(failure error) verdict {
	if p.object.Spec.Suspend {
		return verdict{v1alpha1.ReasonSuspended, "spec.suspend is set; changes are kept and written when it is lifted"}
	}
	return verdictOf(failure, v1alpha1.ReasonPushFailed)
}

// ruleStatus brings the status of a rule to what is found now, and says whether that is new. v is about what the rule selects,
// destination about where it goes.
func ruleStatus(r *rulePlan, v, destination verdict, status *v1alpha1.WatchRuleStatus) bool {
	before := *status
	status.ObservedGeneration = r.generation
	status.Conditions = slices.Clone(before.Conditions)
	set := conditionsFor(&status.Conditions, r.generation)
	if v.ok() && !destination.ok() {
		set.notReady(verdict{v1alpha1.ReasonDestinationNotReady, fmt.Sprintf(
			"GitDestination %s is not ready, %s: %s", r.destination, destination.reason, destination.message)}, destination.reason)
	} else {
		set.ready(v, "Everything that the rule selects is watched")
	}
	set.access(r.access, "The GitDestination and its GitRepoConfig admit the rule")
	set.settle()
	status.MatchedResourceTypes = nil
	for _, t := range r.types {
		status.MatchedResourceTypes = append(status.MatchedResourceTypes, resourceType(t.Resource))
	}
	return !equality.Semantic.DeepEqual(before, *status)
}

// selected is the verdict about what a rule selects, before anything is watched.
func (r *rulePlan) selected() verdict {
	if !r.verdict.ok() || len(r.unmatched) == 0 {
		return r.verdict
	}
	reason, lines := v1alpha1.ReasonTypeNotFound, make([]string, len(r.unmatched))
	if len(r.types) == 0 {
		reason = v1alpha1.ReasonNoMatchingTypes
	}
	for i, unmatched := range r.unmatched {
		lines[i] = unmatched.String()
		if unmatched.Uncertain {
			reason = v1alpha1.ReasonDiscoveryFailed
		}
	}
	return verdict{reason, strings.Join(lines, "; ") + ". What appears later is followed then"}
}

func conditionsOfRepository(r *v1alpha1.GitRepoConfig) []metav1.Condition { return r.Status.Conditions }
func conditionsOfDestination(d *v1alpha1.GitDestination) []metav1.Condition {
	return d.Status.Conditions
}
func conditionsOfWatchRule(r *v1alpha1.WatchRule) []metav1.Condition { return r.Status.Conditions }
func conditionsOfClusterWatchRule(r *v1alpha1.ClusterWatchRule) []metav1.Condition {
	return r.Status.Conditions
}
