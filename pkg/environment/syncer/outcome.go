// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// maxMessageBytes limits the error message of a record.
const maxMessageBytes = 2048

// recordOutcome is the outcome of a run for one record.
type recordOutcome struct {
	state    v1alpha1.SyncState
	failure  *syncstatus.Failure
	failures []v1alpha1.ObjectFailure
}

// outcome returns the outcome of the run for a record of a type. A record becomes Conflicted only when everything else is done: until
// then, a retry achieves more.
func (x *execution) outcome(of v1alpha1.SyncType, result Result, failed error) recordOutcome {
	o := recordOutcome{state: v1alpha1.SyncStateCompleted, failures: failuresOf(x.concerning(of, result))}
	switch {
	case failed != nil:
		o.fail(v1alpha1.SyncStateFailed, reasonOf(failed), failed.Error())
	case x.job.Request.Mode == ModeDryRun:
	case result.Complete && len(result.Plan.Conflicts) > 0 && of == v1alpha1.SyncTypeEnvironment:
		o.fail(v1alpha1.SyncStateConflicted, v1alpha1.ReasonFieldsChangedTwice, join(conflicting(result.Plan.Conflicts), failing(o.failures)))
	case len(o.failures) == 0:
	case !result.Complete && len(result.Written) == 0:
		o.fail(v1alpha1.SyncStateFailed, o.failures[0].Reason, "Nothing was written: "+failing(o.failures))
	default:
		o.fail(v1alpha1.SyncStateFailed, o.failures[0].Reason, failing(o.failures))
	}
	return o
}

func (o *recordOutcome) fail(to v1alpha1.SyncState, reason, message string) {
	o.state, o.failure = to, &syncstatus.Failure{Reason: reason, Message: summary.Cut(summary.Line(message), maxMessageBytes)}
}

// concerning returns the failures that concern a record of a type. Dependencies can be up to date while workloads are not.
func (x *execution) concerning(of v1alpha1.SyncType, result Result) []v1alpha1.ObjectFailure {
	if of != v1alpha1.SyncTypeDependency || !result.Complete {
		return result.Failures
	}
	return slices.DeleteFunc(slices.Clone(result.Failures), func(f v1alpha1.ObjectFailure) bool {
		return !v1alpha1.DependencyType(f.Type).Valid()
	})
}

// failuresOf returns failures as a record contains them: each object once, refusals first, because they prevent every write.
func failuresOf(failures []v1alpha1.ObjectFailure) []v1alpha1.ObjectFailure {
	var out []v1alpha1.ObjectFailure
	seen := map[v1alpha1.ObjectFailure]bool{}
	for _, refused := range []bool{true, false} {
		for _, failure := range failures {
			of := v1alpha1.ObjectFailure{Type: failure.Type, Namespace: failure.Namespace, Name: failure.Name}
			if (failure.Reason == v1alpha1.ReasonRefused) != refused || seen[of] {
				continue
			}
			seen[of] = true
			failure.Message = summary.Cut(failure.Message, v1alpha1.MaxFailureBytes)
			out = append(out, failure)
		}
	}
	return out[:min(len(out), v1alpha1.MaxFailures)]
}

// failing summarizes failures, empty if there are none.
func failing(failures []v1alpha1.ObjectFailure) string {
	switch n := len(failures) - 1; {
	case n < 0:
		return ""
	case n == 0:
		return failures[0].Message
	default:
		return fmt.Sprintf("%s; and %s failed", failures[0].Message, summary.Count(n, "more object"))
	}
}

// conflicting summarizes the fields that a user has to decide about.
func conflicting(conflicts []v1alpha1.WorkloadConflict) string {
	fields := 0
	names := make([]string, len(conflicts))
	for i, conflict := range conflicts {
		fields += len(conflict.Fields)
		names[i] = fmt.Sprintf("%s '%s'", conflict.Kind, conflict.Name)
	}
	return fmt.Sprintf("%s changed here and in the catalog, of %s", summary.Count(fields, "field"), strings.Join(names, ", "))
}

func join(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), "; ")
}

// warnings returns what the run left out.
func (x *execution) warnings(result Result) []string {
	if result.Plan == nil {
		return nil
	}
	warnings := slices.Clone(result.Plan.Warnings)
	if result.Unchecked {
		warnings = append(warnings, fmt.Sprintf("the namespace %s does not exist yet: what it would refuse is not known",
			x.job.Environment.Spec.TargetNamespace))
	}
	if x.job.Request.Mode == ModeDryRun && len(result.Plan.Conflicts) > 0 {
		warnings = append(warnings, conflicting(result.Plan.Conflicts))
	}
	return warnings[:min(len(warnings), v1alpha1.MaxFailures)]
}
