// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Reasons of Events about an environment that are not those of its conditions.
const (
	// reasonSynced says that a run has done everything.
	reasonSynced = "Synced"
	// reasonPreviewed says what would have been done.
	reasonPreviewed = "Previewed"
	// reasonOffered says that the catalog has a newer revision, and reasonDependenciesChanged that what workloads refer to has changed,
	// which nothing takes by itself.
	reasonOffered             = "Offered"
	reasonDependenciesChanged = "DependenciesChanged"
	// reasonManualIntervention says that a record needs someone.
	reasonManualIntervention = "ManualIntervention"
	// reasonNamespaceKept says why the target is not deleted with the environment.
	reasonNamespaceKept = "NamespaceKept"
)

// events tell people of environments. An Event is made after what it tells of has been written, so a process that dies between the
// two leaves one out, and none is made twice: records and conditions are what counts. They say what those say, and have
// nothing of what is in objects.
type events struct {
	recorder   controllerevents.Recorder
	conditions *controllerevents.Announcer
}

func newEvents(recorder controllerevents.Recorder) *events {
	return &events{recorder, controllerevents.New(recorder, troublesOf)}
}

// prompted tells of what is new that users can ask for, once its name has been written into the status: a name is written once, so that
// neither the next look nor a restart tells of it again.
//
// dependencies is the record that status.latestDependencySync names, nil if there is none.
func (e *events) prompted(before, after *v1alpha1.Environment, dependencies *v1alpha1.SyncStatus) {
	was, is := &before.Status, &after.Status
	if after.Spec.AutoSync || is.AppliedRevision == 0 {
		return
	}
	if is.LatestCatalogSync != was.LatestCatalogSync && is.LatestRevision > is.AppliedRevision && after.Spec.PinnedRevision == nil {
		e.recorder.Event(after, corev1.EventTypeNormal, reasonOffered, fmt.Sprintf("The catalog offers revision %d (SyncStatus %s), and the environment holds revision %d",
			is.LatestRevision, is.LatestCatalogSync, is.AppliedRevision))
	}
	if dependencies != nil && is.LatestDependencySync != was.LatestDependencySync {
		e.recorder.Event(after, corev1.EventTypeNormal, reasonDependenciesChanged, fmt.Sprintf("SyncStatus %s: %s changed in the source",
			dependencies.Name, syncstatussummary.Counts(numbersOf(dependencies))))
	}
}

// numbersOf counts the objects that a record names, by type.
func numbersOf(record *v1alpha1.SyncStatus) map[string]int {
	numbers := map[string]int{}
	for _, changed := range record.Status.ResourceSummaries {
		numbers[changed.Type]++
	}
	return numbers
}

// ended tells of a run that has come to its end.
func (e *events) ended(environment *v1alpha1.Environment, record *v1alpha1.SyncStatus) {
	reason := reasonSynced
	if record.Status.Preview {
		reason = reasonPreviewed
	}
	e.recorder.Event(environment, corev1.EventTypeNormal, reason, fmt.Sprintf("SyncStatus %s: %s", record.Name, doneBy(record)))
}

// doneBy says what a run has changed.
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

// gaveUp tells that somebody has to look at what has failed.
func (e *events) gaveUp(environment *v1alpha1.Environment, record *v1alpha1.SyncStatus) {
	e.recorder.Event(environment, corev1.EventTypeWarning, reasonManualIntervention,
		fmt.Sprintf("SyncStatus %s: %s", record.Name, syncstatus.Sentence(record)))
}

// troublesOf reads conditions. What was told before stays while something is being done about it.
func troublesOf(conditions []metav1.Condition, before controllerevents.Troubles) controllerevents.Troubles {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return controllerevents.Troubles{}
	}
	switch ready.Reason {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonExpired:
		if reason, ok := before[ready.Type]; ok {
			return controllerevents.Troubles{ready.Type: reason}
		}
		return controllerevents.Troubles{}
	case v1alpha1.ReasonNeverSynced, v1alpha1.ReasonCatalogNotReady, v1alpha1.ReasonWorkloadsNotReady:
		return controllerevents.Troubles{}
	}
	return controllerevents.Troubles{ready.Type: ready.Reason}
}
