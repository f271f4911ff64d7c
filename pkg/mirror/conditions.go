// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// fulfilled is the reason of Ready while an object is as its spec asks for.
func fulfilled(message string) conditions.Reason {
	return conditions.Reason{Code: v1alpha1.ReasonSucceeded, Message: message}
}

// isStalled reports whether a user must change something before an object with the reason can be ready.
func isStalled(reason string) bool {
	switch reason {
	case v1alpha1.ReasonLeaseHeldElsewhere, v1alpha1.ReasonRepositoryUnreachable, v1alpha1.ReasonPushFailed, v1alpha1.ReasonSuspended,
		v1alpha1.ReasonDiscoveryFailed, v1alpha1.ReasonWatchFailed, v1alpha1.ReasonProposalFailed:
		return false
	}
	return true
}

// setAccess sets AccessDenied. It is Unknown if the object that would grant access does not exist.
func setAccess(set *conditions.Setter, problem conditions.Reason, granted string) {
	status := metav1.ConditionUnknown
	switch problem.Code {
	case "":
		status, problem = metav1.ConditionFalse, conditions.Reason{Code: v1alpha1.ReasonAccessGranted, Message: granted}
	case v1alpha1.ReasonAccessNotGranted:
		status = metav1.ConditionTrue
	}
	set.Set(v1alpha1.ConditionAccessDenied, status, problem)
}

// setOwnership sets OwnershipConflict once the markers have been read.
func setOwnership(set *conditions.Setter, s snapshot) {
	if !s.ownerKnown {
		return
	}
	none := conditions.Reason{Code: v1alpha1.ReasonOwned, Message: "The marker in the folder names this GitDestination"}
	if s.owner == nil {
		none = conditions.Reason{Code: v1alpha1.ReasonUnclaimed, Message: "The folder has no marker; the next commit writes one"}
	}
	var conflict conditions.Reason
	if s.conflict != "" {
		conflict = conditions.Reason{Code: v1alpha1.ReasonOwnedByAnother, Message: s.conflict}
	}
	set.Problem(v1alpha1.ConditionOwnershipConflict, conflict, none)
}

// setAuthors sets AuthorsReported. While nothing is known yet, the condition keeps its last status.
func setAuthors(set *conditions.Setter, r authorReports) {
	switch {
	case r.known:
		set.Good(v1alpha1.ConditionAuthorsReported, r.problem,
			conditions.Reason{Code: v1alpha1.ReasonReported, Message: "API servers report who makes changes"})
	case r.expected:
		set.Keep(v1alpha1.ConditionAuthorsReported)
	}
}

// setSecrets sets SecretsEncrypted.
func setSecrets(set *conditions.Setter, p secretsPlan) {
	status := metav1.ConditionFalse
	if p.encrypted {
		status = metav1.ConditionTrue
	}
	set.Set(v1alpha1.ConditionSecretsEncrypted, status, p.reason)
}

// optionalConditions are the types of conditions that the mirror sets and that an object may lack.
var optionalConditions = []string{
	v1alpha1.ConditionOwnershipConflict, v1alpha1.ConditionSecretsEncrypted, v1alpha1.ConditionAuthorsReported, v1alpha1.ConditionAccessDenied,
	v1alpha1.ConditionProposalDeclined, v1alpha1.ConditionProposalOverdue,
}

// destinationConditions returns the conditions of a GitDestination, given its current ones. failure is the error that blocks it; nil
// if there is none. gaps is what its folder may lack nevertheless.
func destinationConditions(
	d *destination, failure error, gaps string, reports authorReports, current []metav1.Condition,
) []metav1.Condition {
	p := d.plan.Load()
	current = slices.Clone(current)
	set := conditions.For(&current, p.object.Generation, time.Now())
	problem := d.problem(p, failure)
	fine := fulfilled(exceptFor("The folder holds what the rules select", gaps))
	switch proposed := d.proposal.Load().describe(); {
	case proposed != "":
		fine.Message = proposed + "; " + exceptFor("the destination's branch holds what the rules select", gaps)
	case !p.referred && p.held:
		fine.Message = "No rule that refers to the GitDestination is in force, so its files stay as they are"
	case !p.referred:
		fine.Message = "No rule refers to the GitDestination, so nothing is mirrored to it"
	}
	set.Ready(problem, fine, problem.Code, isStalled(problem.Code))
	setAccess(set, p.accessProblem(), "The GitRepoConfig admits the GitDestination")
	setOwnership(set, d.record.current())
	setSecrets(set, p.secrets)
	setAuthors(set, reports)
	setProposal(set, p, d.proposal.Load())
	set.Prune(optionalConditions...)
	return current
}

// accessProblem returns why the repository does not admit the destination; zero if it does.
func (p *destinationPlan) accessProblem() conditions.Reason {
	if p.repository == nil {
		return p.problem
	}
	return conditions.Reason{}
}

// problem returns why the destination does not hold what its rules select; zero if it does.
func (d *destination) problem(p *destinationPlan, failure error) conditions.Reason {
	blocked := d.writeProblem(p, failure)
	switch {
	case !p.problem.IsZero():
		return p.problem
	case !blocked.IsZero():
		return blocked
	case !d.record.current().served:
		return conditions.Progressing("The branch is being read")
	case d.seeds.outstanding():
		return conditions.Progressing("The cluster is being compared with the folder")
	}
	if state := d.proposal.Load(); state != nil && p.object.PullRequest() != nil {
		return state.problem
	}
	return conditions.Reason{}
}

// writeProblem returns why changes are not written to the folder; zero if they are. failure is the error that blocks the destination.
func (d *destination) writeProblem(p *destinationPlan, failure error) conditions.Reason {
	dropped := !d.droppedSince().IsZero()
	if p.object.Spec.Suspend {
		message := "spec.suspend is set; changes are kept and written when it is lifted"
		if dropped {
			message = "spec.suspend is set; " + changesDropped
		}
		return conditions.Reason{Code: v1alpha1.ReasonSuspended, Message: message}
	}
	problem := reasonOf(failure, v1alpha1.ReasonPushFailed)
	if dropped && !problem.IsZero() {
		problem.Message += "; " + changesDropped
	}
	return problem
}

// updateRuleStatus updates the status of a rule and reports whether it has changed. problem is why the rule is not in force, or what it
// selects is not watched or compared yet; destination is why its GitDestination is not written.
func updateRuleStatus(r *rulePlan, problem, destination conditions.Reason, status *v1alpha1.WatchRuleStatus) bool {
	before := *status
	status.ObservedGeneration = r.generation
	status.Conditions = slices.Clone(before.Conditions)
	set := conditions.For(&status.Conditions, r.generation, time.Now())
	cause := problem.Code
	// A comparison in progress does not end before the destination can be written.
	if (problem.IsZero() || cause == v1alpha1.ReasonProgressing) && !destination.IsZero() {
		problem = conditions.Reason{Code: v1alpha1.ReasonDestinationNotReady, Message: fmt.Sprintf(
			"GitDestination %s is not ready, %s: %s", r.destination, destination.Code, destination.Message)}
		cause = destination.Code
	}
	set.Ready(problem, fulfilled("Everything that the rule selects is watched"), cause, isStalled(cause))
	setAccess(set, r.access, "The GitDestination and its GitRepoConfig admit the rule")
	set.Prune(optionalConditions...)
	status.MatchedResourceTypes = nil
	for _, t := range r.types {
		status.MatchedResourceTypes = append(status.MatchedResourceTypes, resourceType(t.Resource))
	}
	return !equality.Semantic.DeepEqual(before, *status)
}

// updateRepositoryStatus updates the status of a GitRepoConfig with the result of checking a generation of it, and reports whether it has
// changed. note is what the user should know of a repository that is ready.
func updateRepositoryStatus(object *v1alpha1.GitRepoConfig, generation int64, problem conditions.Reason, note string) bool {
	before := object.Status
	object.Status.ObservedGeneration = generation
	object.Status.Conditions = slices.Clone(before.Conditions)
	set := conditions.For(&object.Status.Conditions, generation, time.Now())
	set.Ready(problem, fulfilled("The repository can be read, and the server offers to take pushes"+note), problem.Code, isStalled(problem.Code))
	set.Prune(optionalConditions...)
	return !equality.Semantic.DeepEqual(before, object.Status)
}

// redirectNote is what follows the message of a ready repository whose server redirects to a URL; empty if it does not.
func redirectNote(redirect string) string {
	if redirect == "" {
		return ""
	}
	return fmt.Sprintf(". The server redirects to %s: set spec.repoUrl to that URL before the redirect ends", redirect)
}

// selectionProblem returns why a rule is not in force, or which of its types are not served; zero if there is neither.
func (r *rulePlan) selectionProblem() conditions.Reason {
	if !r.problem.IsZero() || len(r.unmatched) == 0 {
		return r.problem
	}
	code, lines := v1alpha1.ReasonTypeNotFound, make([]string, len(r.unmatched))
	if len(r.types) == 0 {
		code = v1alpha1.ReasonNoMatchingTypes
	}
	for i, unmatched := range r.unmatched {
		lines[i] = unmatched.String()
		if unmatched.Uncertain {
			code = v1alpha1.ReasonDiscoveryFailed
		}
	}
	return conditions.Reason{Code: code, Message: strings.Join(lines, "; ") + ". What appears later is followed then"}
}

func conditionsOfRepository(r *v1alpha1.GitRepoConfig) []metav1.Condition { return r.Status.Conditions }
func conditionsOfDestination(d *v1alpha1.GitDestination) []metav1.Condition {
	return d.Status.Conditions
}
func conditionsOfWatchRule(r *v1alpha1.WatchRule) []metav1.Condition { return r.Status.Conditions }
func conditionsOfClusterWatchRule(r *v1alpha1.ClusterWatchRule) []metav1.Condition {
	return r.Status.Conditions
}
