// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Reasons of Events about a catalog that are not those of its conditions.
const (
	// reasonChanged says that the catalog has its next revision.
	reasonChanged = "Changed"
	// reasonPreviewed says what would have changed.
	reasonPreviewed = "Previewed"
	// reasonManualIntervention says that a record needs someone.
	reasonManualIntervention = "ManualIntervention"
)

// events tell people of catalogs. An Event is made after what it tells of has been written, so a process that dies between the
// two leaves one out, and none is made twice: records and conditions are what counts. They say what those say, and have
// nothing of what is in objects.
type events struct {
	recorder   controllerevents.Recorder
	conditions *controllerevents.Announcer
}

// newEvents returns events that are made while stopped is false.
func newEvents(to controllerevents.Recorder, stopped func() bool) *events {
	recorder := stoppable{to, stopped}
	return &events{recorder, controllerevents.New(recorder, troublesOf)}
}

// stoppable makes Events unless the SyncPolicy stops them.
type stoppable struct {
	to      controllerevents.Recorder
	stopped func() bool
}

// Event makes an Event now or never.
func (s stoppable) Event(object runtime.Object, eventType, reason, message string) {
	if !s.stopped() {
		s.to.Event(object, eventType, reason, message)
	}
}

// written tells what is new in the status of a catalog.
func (e *events) written(before, after *v1alpha1.AppCatalog) {
	e.conditions.Announce(after, before.Status.Conditions, after.Status.Conditions)
	if gone := newlyMissing(before, after); len(gone) > 0 {
		e.recorder.Event(after, corev1.EventTypeWarning, v1alpha1.ReasonDeletedInSource, deletedInSource+syncstatussummary.List(gone))
	}
}

// advanced tells what made the newest revision of a catalog.
func (e *events) advanced(catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus) {
	e.recorder.Event(catalog, corev1.EventTypeNormal, reasonChanged,
		fmt.Sprintf("Revision %d: %s", record.Status.Revision, syncstatus.Sentence(record)))
}

// recorded tells of the state that a record has come to, if the status of its catalog does not.
func (e *events) recorded(record *v1alpha1.SyncStatus) {
	switch {
	case record.Status.State == v1alpha1.SyncStateManualIntervention:
		e.recorder.Event(subjectOf(record), corev1.EventTypeWarning, reasonManualIntervention, syncstatus.Sentence(record))
	case record.Status.Preview:
		e.recorder.Event(subjectOf(record), corev1.EventTypeNormal, reasonPreviewed, syncstatus.Sentence(record))
	}
}

// subjectOf is the catalog of a record.
func subjectOf(record *v1alpha1.SyncStatus) *corev1.ObjectReference {
	subject := record.Spec.Subject
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: string(subject.Kind),
		Namespace: record.Namespace, Name: subject.Name, UID: subject.UID,
	}
}

// newlyMissing are the workloads that the source has not any more since the status was last written.
func newlyMissing(before, after *v1alpha1.AppCatalog) (names []string) {
	known := map[reference]bool{}
	for _, entry := range before.Status.Workloads {
		known[reference{Kind: entry.Kind, Name: entry.Name}] = entry.Missing
	}
	for _, entry := range after.Status.Workloads {
		if entry.Missing && !known[reference{Kind: entry.Kind, Name: entry.Name}] {
			names = append(names, fmt.Sprintf("%s %s", entry.Kind, entry.Name))
		}
	}
	return names
}

// troublesOf reads conditions. While it cannot be said whether a catalog is ready, what was told before stays. What is the
// matter with the source is told once, though Ready tells it too while nothing else is.
func troublesOf(conditions []metav1.Condition, before controllerevents.Troubles) controllerevents.Troubles {
	now := controllerevents.Troubles{}
	source := meta.FindStatusCondition(conditions, v1alpha1.ConditionSourceReachable)
	if source != nil && source.Status == metav1.ConditionFalse && source.Reason != v1alpha1.ReasonProgressing {
		now[source.Type] = source.Reason
	}
	switch ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); {
	case ready == nil || ready.Status != metav1.ConditionFalse:
	case ready.Reason == v1alpha1.ReasonProgressing:
		if reason, ok := before[ready.Type]; ok {
			now[ready.Type] = reason
		}
	case ready.Reason != now[v1alpha1.ConditionSourceReachable]:
		now[ready.Type] = ready.Reason
	}
	return now
}
