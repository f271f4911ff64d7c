// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// addProblems adds to a preview what would prevent a sync from applying all of it.
func addProblems(shown *v1alpha1.SyncPlan, e *v1alpha1.Environment, result Result) {
	shown.Warnings = slices.Clone(shown.Warnings)
	if result.Unchecked {
		shown.Changes = slices.Insert(shown.Changes, 0, creationOf(e.Spec.TargetNamespace))
		shown.Warnings = append(shown.Warnings, fmt.Sprintf(
			"The namespace %s does not exist yet, so nothing could be tried in it", e.Spec.TargetNamespace))
	}
	for _, missing := range result.Plan.Missing {
		shown.Warnings = append(shown.Warnings, missing.Message)
	}
	for _, failure := range result.Failures {
		if failure.Reason == v1alpha1.ReasonRefused && !markRefused(shown.Changes, failure) {
			shown.Warnings = append(shown.Warnings, failure.Message)
		}
	}
}

func creationOf(namespace string) v1alpha1.ObjectChange {
	return v1alpha1.ObjectChange{
		Action: v1alpha1.SyncActionCatalog, APIVersion: "v1", Kind: "Namespace", Name: namespace, ChangeType: v1alpha1.ChangeAdded,
	}
}

// markRefused records in the change of an object why the cluster would refuse it. It reports whether there is such a change.
func markRefused(changes []v1alpha1.ObjectChange, failure v1alpha1.ObjectFailure) bool {
	i := slices.IndexFunc(changes, func(change v1alpha1.ObjectChange) bool {
		return change.Kind == failure.Type && change.Namespace == failure.Namespace && change.Name == failure.Name
	})
	if i < 0 {
		return false
	}
	if changes[i].Refusal != "" {
		failure.Message = changes[i].Refusal + "; " + failure.Message
	}
	changes[i].Refusal = failure.Message
	return true
}
