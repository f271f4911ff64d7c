// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Reasons of Events about an environment that are not those of its conditions.
const (
	// reasonSynced is the reason of a completed sync.
	reasonSynced = "Synced"
	// reasonPreviewed is the reason of a completed dry run.
	reasonPreviewed = "Previewed"
	// reasonOffered is the reason of a newer catalog revision, and reasonDependenciesChanged of changed dependencies, of an environment
	// that does not sync automatically.
	reasonOffered             = "Offered"
	reasonDependenciesChanged = "DependenciesChanged"
	// reasonManualIntervention is the reason of a record without attempts left.
	reasonManualIntervention = "ManualIntervention"
	// reasonNamespaceKept is the reason why the target namespace is not deleted with the environment.
	reasonNamespaceKept = "NamespaceKept"
)

// events publishes Events about environments. An Event is published after the change that it reports was written: a crash in between
// loses the Event, and no Event is published twice. Events repeat records and conditions, and contain no content of objects.
type events struct {
	recorder   controllerevents.Recorder
	conditions *controllerevents.Announcer
}

func newEvents(recorder controllerevents.Recorder) *events {
	reasons := controllerevents.ReadyReasons{
		Keep:   []string{v1alpha1.ReasonExpired},
		Ignore: []string{v1alpha1.ReasonNeverSynced, v1alpha1.ReasonCatalogNotReady, v1alpha1.ReasonWorkloadsNotReady},
	}
	return &events{recorder, controllerevents.New(recorder, reasons.Troubles)}
}

// prompted publishes Events about changes that users can sync, after their record was named in the status. A name is written once, so
// neither the next reconcile nor a restart repeats the Event.
//
// dependencies is the record that status.latestDependencySync names, nil if there is none.
func (e *events) prompted(before, after *v1alpha1.Environment, dependencies *v1alpha1.SyncStatus) {
	was, is := &before.Status, &after.Status
	if after.Spec.AutoSync || is.AppliedRevision == 0 {
		return
	}
	if is.LatestCatalogSync != was.LatestCatalogSync && is.LatestRevision > is.AppliedRevision && after.Spec.PinnedRevision == nil {
		e.recorder.Event(after, corev1.EventTypeNormal, reasonOffered,
			fmt.Sprintf("The catalog offers revision %d (SyncStatus %s), and the environment holds revision %d",
				is.LatestRevision, is.LatestCatalogSync, is.AppliedRevision))
	}
	if dependencies != nil && is.LatestDependencySync != was.LatestDependencySync {
		e.recorder.Event(after, corev1.EventTypeNormal, reasonDependenciesChanged, fmt.Sprintf("SyncStatus %s: %s changed in the source",
			dependencies.Name, syncstatussummary.Counts(numbersOf(dependencies))))
	}
}

// numbersOf counts the objects in a record by type.
func numbersOf(record *v1alpha1.SyncStatus) map[string]int {
	numbers := map[string]int{}
	for _, changed := range record.Status.ResourceSummaries {
		numbers[changed.Type]++
	}
	return numbers
}

// ended publishes an Event about a completed sync.
func (e *events) ended(environment *v1alpha1.Environment, record *v1alpha1.SyncStatus) {
	reason := reasonSynced
	if record.Status.Preview {
		reason = reasonPreviewed
	}
	e.recorder.Event(environment, corev1.EventTypeNormal, reason, fmt.Sprintf("SyncStatus %s: %s", record.Name, doneBy(record)))
}

// doneBy summarizes what a sync has changed.
func doneBy(record *v1alpha1.SyncStatus) string {
	what := "nothing was to be changed"
	if numbers := numbersOf(record); len(numbers) > 0 {
		what = syncstatussummary.Counts(numbers) + " changed"
	}
	if record.Status.Revision > 0 {
		what = fmt.Sprintf("revision %d, %s", record.Status.Revision, what)
	}
	return what
}

// gaveUp publishes an Event about a record that requires manual intervention.
func (e *events) gaveUp(environment *v1alpha1.Environment, record *v1alpha1.SyncStatus) {
	e.recorder.Event(environment, corev1.EventTypeWarning, reasonManualIntervention,
		fmt.Sprintf("SyncStatus %s: %s", record.Name, syncstatus.Summary(record)))
}
