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
	// reasonChanged: the catalog has a new revision.
	reasonChanged = "Changed"
	// reasonPreviewed: the source has changes, which the catalog does not apply because it is a preview.
	reasonPreviewed = "Previewed"
	// reasonManualIntervention: a record needs manual intervention.
	reasonManualIntervention = "ManualIntervention"
)

// events publishes Events about catalogs. An Event is published after the change that it reports was written: a crash in between loses an
// Event, and no Event is published twice. Events repeat what records and conditions report. They have no content of objects.
type events struct {
	recorder   controllerevents.Recorder
	conditions *controllerevents.Announcer
}

// newEvents returns events that are published while suspended returns false.
func newEvents(recorder controllerevents.Recorder, suspended func() bool) *events {
	out := suspendable{recorder, suspended}
	return &events{out, controllerevents.New(out, troublesOf)}
}

// suspendable is a recorder that the SyncPolicy can suspend.
type suspendable struct {
	recorder  controllerevents.Recorder
	suspended func() bool
}

// Event publishes an Event. It drops the Event while Events are suspended.
func (s suspendable) Event(object runtime.Object, eventType, reason, message string) {
	if !s.suspended() {
		s.recorder.Event(object, eventType, reason, message)
	}
}

// statusWritten publishes Events about what has changed in the status of a catalog.
func (e *events) statusWritten(before, after *v1alpha1.AppCatalog) {
	e.conditions.Announce(after, before.Status.Conditions, after.Status.Conditions)
	if missing := newlyMissing(before, after); len(missing) > 0 {
		e.recorder.Event(after, corev1.EventTypeWarning, v1alpha1.ReasonDeletedInSource, deletedInSource+syncstatussummary.List(missing))
	}
}

// revisionWritten publishes the changes of the newest revision of a catalog.
func (e *events) revisionWritten(catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus) {
	e.recorder.Event(catalog, corev1.EventTypeNormal, reasonChanged,
		fmt.Sprintf("Revision %d: %s", record.Status.Revision, syncstatus.Summary(record)))
}

// recordWritten publishes the new state of a record, if the status of its catalog does not report it.
func (e *events) recordWritten(record *v1alpha1.SyncStatus) {
	switch {
	case record.Status.State == v1alpha1.SyncStateManualIntervention:
		e.recorder.Event(subjectOf(record), corev1.EventTypeWarning, reasonManualIntervention, syncstatus.Summary(record))
	case record.Status.Preview:
		e.recorder.Event(subjectOf(record), corev1.EventTypeNormal, reasonPreviewed, syncstatus.Summary(record))
	}
}

// subjectOf returns a reference to the catalog of a record.
func subjectOf(record *v1alpha1.SyncStatus) *corev1.ObjectReference {
	subject := record.Spec.Subject
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: string(subject.Kind),
		Namespace: record.Namespace, Name: subject.Name, UID: subject.UID,
	}
}

// newlyMissing returns the workloads that have become missing in the source since the status was last written.
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

// troublesOf returns the problems that conditions report. A problem of the source is returned once, although Ready reports it as well if
// there is no other problem.
func troublesOf(conditions []metav1.Condition, before controllerevents.Troubles) controllerevents.Troubles {
	source := meta.FindStatusCondition(conditions, v1alpha1.ConditionSourceReachable)
	if source == nil || source.Status != metav1.ConditionFalse || source.Reason == v1alpha1.ReasonProgressing {
		return controllerevents.ReadyReasons{}.Troubles(conditions, before)
	}
	now := controllerevents.ReadyReasons{Ignore: []string{source.Reason}}.Troubles(conditions, before)
	now[source.Type] = source.Reason
	return now
}
