// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// cause is why a change is not taken, and the command that changes that.
type cause struct{ why, do string }

// causeOf returns why an environment has not taken a change, the most severe cause first. It uses only what the API says.
func causeOf(e *v1alpha1.Environment, change *v1alpha1.ObjectChange) cause {
	run := func(command, flags string) string {
		return strings.TrimSpace(fmt.Sprintf("kubectl slipstream %s %s -n %s %s", command, cli.Quoted(e.Name), cli.Quoted(e.Namespace), flags))
	}
	follow := "kubectl slipstream status -w -n " + cli.Quoted(e.Namespace)
	status := &e.Status
	switch {
	case e.DeletionTimestamp != nil:
		return cause{why: "the environment is being deleted"}
	case apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionSyncing):
		return cause{"a sync is running", follow}
	case isConflicted(e, change):
		return cause{"conflict: it was changed here, too" + conflictOwners(e, change), run("resolve", "")}
	case change.Refusal != "":
		return cause{"refused: " + change.Refusal, run("sync", "") + ", once that is repaired"}
	}
	if stalled := trueCondition(status, v1alpha1.ConditionStalled); stalled != "" && status.LastError == nil && len(status.Conflicts) == 0 &&
		e.Spec.PinnedRevision == nil {
		return cause{"stalled: " + stalled, fmt.Sprintf("kubectl describe environment %s -n %s", cli.Quoted(e.Name), cli.Quoted(e.Namespace))}
	}
	switch {
	case status.LastError != nil:
		return cause{"the last sync failed: " + status.LastError.Message, run("sync", "") + ", once that is repaired"}
	case e.Spec.PinnedRevision != nil:
		return cause{fmt.Sprintf("pinned at r%d", *e.Spec.PinnedRevision), run("unpin", "")}
	case isDismissed(status, change):
		return cause{"the change was dismissed; who did it is not in the status", run("sync", "")}
	case !e.Spec.AutoSync:
		return cause{"manual sync: spec.autoSync is off", run("sync", "")}
	case e.Spec.Shadow:
		return cause{"shadow: automatic syncs are only recorded", run("sync", "")}
	}
	return causeOfAutomatic(e, run, follow)
}

// causeOfAutomatic returns why an automatic sync has not begun.
func causeOfAutomatic(e *v1alpha1.Environment, run func(command, flags string) string, follow string) cause {
	status := &e.Status
	if held := trueCondition(status, v1alpha1.ConditionHeld); held != "" {
		switch apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionHeld).Reason {
		case v1alpha1.ReasonWindowClosed:
			return cause{"auto-sync waits for its window: " + held, run("sync", "--force")}
		case v1alpha1.ReasonRateLimited:
			return cause{"auto-sync waits: " + held, follow}
		}
		return cause{"auto-sync waits: " + held, run("sync", "")}
	}
	if len(status.ActiveSyncs) > 0 {
		return cause{"a sync is about to begin: " + strings.Join(status.ActiveSyncs, ", "), follow}
	}
	return cause{"not known: auto-sync is on, and the server reports nothing that holds it back", follow}
}

// isConflicted reports whether a user has to decide about an object.
func isConflicted(e *v1alpha1.Environment, change *v1alpha1.ObjectChange) bool {
	return conflictOf(e, change) != nil || slices.ContainsFunc(change.Fields, func(f v1alpha1.FieldChange) bool { return f.Conflict })
}

func conflictOf(e *v1alpha1.Environment, change *v1alpha1.ObjectChange) *v1alpha1.WorkloadConflict {
	at := slices.IndexFunc(e.Status.Conflicts, func(c v1alpha1.WorkloadConflict) bool {
		return string(c.Kind) == change.Kind && c.Name == change.Name
	})
	if at < 0 {
		return nil
	}
	return &e.Status.Conflicts[at]
}

// conflictOwners returns which field managers changed the fields of a conflict in the environment.
func conflictOwners(e *v1alpha1.Environment, change *v1alpha1.ObjectChange) string {
	var managers []string
	if conflict := conflictOf(e, change); conflict != nil {
		for _, field := range conflict.Fields {
			managers = append(managers, field.Managers...)
		}
	}
	for _, field := range change.Fields {
		if field.Conflict {
			managers = append(managers, field.Owners...)
		}
	}
	slices.Sort(managers)
	if managers = slices.Compact(managers); len(managers) == 0 {
		return "; by what is not known"
	}
	return ", by " + strings.Join(managers, ", ")
}

// isDismissed reports whether a user has dismissed a change.
func isDismissed(status *v1alpha1.EnvironmentStatus, change *v1alpha1.ObjectChange) bool {
	if change.Action == v1alpha1.SyncActionCluster {
		return summary.AreDependenciesDismissed(status)
	}
	return summary.IsCatalogDismissed(status)
}

// trueCondition returns the message of a condition that is true, empty if it is not.
func trueCondition(status *v1alpha1.EnvironmentStatus, condition string) string {
	if !apimeta.IsStatusConditionTrue(status.Conditions, condition) {
		return ""
	}
	return apimeta.FindStatusCondition(status.Conditions, condition).Message
}
