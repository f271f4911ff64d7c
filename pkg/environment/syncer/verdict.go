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

// maxMessageBytes is how long the message about a run is at most.
const maxMessageBytes = 2048

// verdict is what becomes of a record.
type verdict struct {
	to       v1alpha1.SyncState
	failure  *syncstatus.Failure
	failures []v1alpha1.ObjectFailure
}

// verdict says what becomes of a record of a type by what came of the run. Somebody is asked to decide about fields only when all
// else is done: until then, trying again does more.
func (w *work) verdict(of v1alpha1.SyncType, result Result, failed error) verdict {
	v := verdict{to: v1alpha1.SyncStateCompleted, failures: failuresOf(w.concerning(of, result))}
	switch {
	case failed != nil:
		v.fail(v1alpha1.SyncStateFailed, reasonOf(failed), failed.Error())
	case w.Request.Mode == ModeDryRun:
	case result.Complete && len(result.Plan.Conflicts) > 0 && of == v1alpha1.SyncTypeEnvironment:
		v.fail(v1alpha1.SyncStateConflicted, v1alpha1.ReasonFieldsChangedTwice, join(conflicting(result.Plan.Conflicts), failing(v.failures)))
	case len(v.failures) == 0:
	case !result.Complete && len(result.Written) == 0:
		v.fail(v1alpha1.SyncStateFailed, v.failures[0].Reason, "Nothing was written: "+failing(v.failures))
	default:
		v.fail(v1alpha1.SyncStateFailed, v.failures[0].Reason, failing(v.failures))
	}
	return v
}

func (v *verdict) fail(to v1alpha1.SyncState, reason, message string) {
	v.to, v.failure = to, &syncstatus.Failure{Reason: reason, Message: summary.Cut(summary.Line(message), maxMessageBytes)}
}

// concerning returns the failures that a record tells of. What workloads refer to can be brought up to date while workloads cannot.
func (w *work) concerning(of v1alpha1.SyncType, result Result) []v1alpha1.ObjectFailure {
	if of != v1alpha1.SyncTypeDependency || !result.Complete {
		return result.Failures
	}
	return slices.DeleteFunc(slices.Clone(result.Failures), func(f v1alpha1.ObjectFailure) bool { return !v1alpha1.DependencyType(f.Type).Valid() })
}

// failuresOf are failures as a record takes them: each object once, those first that keep everything from being written.
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

// failing is a sentence about failures, empty if there are none.
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

// conflicting is a sentence about fields that somebody has to decide about.
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

// warnings are sentences about what the run did not do.
func (w *work) warnings(result Result) []string {
	if result.Plan == nil {
		return nil
	}
	warnings := slices.Clone(result.Plan.Warnings)
	if result.Unchecked {
		warnings = append(warnings, fmt.Sprintf("the namespace %s does not exist yet: what it would refuse is not known",
			w.Environment.Spec.TargetNamespace))
	}
	if w.Request.Mode == ModeDryRun && len(result.Plan.Conflicts) > 0 {
		warnings = append(warnings, conflicting(result.Plan.Conflicts))
	}
	return warnings[:min(len(warnings), v1alpha1.MaxFailures)]
}
