// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// Record finds how far the work of a SyncStatus has come: completed, dismissed, failed or in conflict. A failure lasts until the record
// is resolved, through all attempts. environment is that of the record, nil if it has none: it has the fields of conflicts.
func Record(record *v1alpha1.SyncStatus, environment *v1alpha1.Environment) Findings {
	found := Findings{State: sentence(syncstatus.Summary(record))}
	status := &record.Status
	switch status.State {
	case v1alpha1.SyncStateCompleted:
		found.add(false, notificationOf(record, v1alpha1.NotifyCompleted, v1alpha1.SeverityInfo))
	case v1alpha1.SyncStateDismissed:
		found.add(false, notificationOf(record, v1alpha1.NotifyDismissed, v1alpha1.SeverityInfo))
	case v1alpha1.SyncStateConflicted:
		n := notificationOf(record, v1alpha1.NotifyConflicted, v1alpha1.SeverityWarning)
		if environment != nil {
			addConflicts(&n, environment.Status.Conflicts)
		}
		found.add(true, n)
	case v1alpha1.SyncStateManualIntervention:
		found.add(true, notificationOf(record, v1alpha1.NotifyFailed, v1alpha1.SeverityError))
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateInProgress:
		switch {
		case status.Error == nil:
		case status.Error.Reason == v1alpha1.ReasonFieldsChangedTwice:
			// A user has resolved the conflict; whether it ends is known when the record is resolved.
			found.Unknown = append(found.Unknown, KeyOf(string(record.UID), v1alpha1.NotifyConflicted))
		default:
			found.add(true, notificationOf(record, v1alpha1.NotifyFailed, v1alpha1.SeverityWarning))
		}
	}
	return found
}

// EndOfRecord returns the key and the event of what Record finds in a record that is Completed or Dismissed; empty for other states.
func EndOfRecord(record *v1alpha1.SyncStatus) (key string, event v1alpha1.NotificationEvent) {
	switch record.Status.State {
	case v1alpha1.SyncStateCompleted:
		event = v1alpha1.NotifyCompleted
	case v1alpha1.SyncStateDismissed:
		event = v1alpha1.NotifyDismissed
	default:
		return "", ""
	}
	return KeyOf(string(record.UID), event), event
}

// IsSilent reports whether nothing is found in a record because of its state alone.
func IsSilent(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStatePending, v1alpha1.SyncStateSuperseded, v1alpha1.SyncStateApplied, v1alpha1.SyncStateAutoApplied:
		return true
	}
	return false
}

// notificationOf returns the notification about a record.
func notificationOf(record *v1alpha1.SyncStatus, event v1alpha1.NotificationEvent, severity v1alpha1.NotificationSeverity) message.Notification {
	status := &record.Status
	state := sentence(syncstatus.Summary(record))
	subject := message.Subject{
		Kind: string(record.Spec.Subject.Kind), APIVersion: v1alpha1.SchemeGroupVersion.String(),
		Namespace: record.Namespace, Name: record.Spec.Subject.Name, UID: string(record.Spec.Subject.UID),
	}
	n := message.Notification{
		Event: event, Time: timeOf(status.ResolvedAt, status.DetectedAt.Time), Severity: severity, Subject: subject,
		State: state, Headline: Headline(subject, sentence(happened(record, event))), Names: first(status.WorkloadNames),
		ChangedBy: authorsOf(record),
		Commits:   commitsOf(record), Actor: cmp.Or(status.ResolvedBy, status.Actor), DedupeKey: KeyOf(string(record.UID), event),
		Command: commandFor(record, event),
	}
	if event == v1alpha1.NotifyFailed || event == v1alpha1.NotifyConflicted {
		n.Repeated = max(0, int(status.Attempts)-1)
	}
	if status.Error != nil {
		n.Error, n.Time = sentence(status.Error.Message), status.Error.At.Time
	}
	counts := newCounts()
	for _, changed := range status.ResourceSummaries {
		counts.add(changed.Type, changed.ChangeType, 1)
	}
	n.Summary = counts.sorted()
	return n
}

// happened returns what has happened to a record, without the details that the notification has besides.
func happened(record *v1alpha1.SyncStatus, event v1alpha1.NotificationEvent) string {
	status := &record.Status
	what := "Sync"
	if record.Spec.Type == v1alpha1.SyncTypeCatalog {
		what = "Update"
	}
	switch {
	case event == v1alpha1.NotifyConflicted:
		return "Conflict: fields were changed here and in the catalog"
	case event == v1alpha1.NotifyFailed && status.State == v1alpha1.SyncStateManualIntervention:
		return what + " failed and needs a decision"
	case event == v1alpha1.NotifyFailed:
		return what + " failed, and is tried again"
	case event == v1alpha1.NotifyCompleted && status.Revision > 0 && !status.Preview:
		return fmt.Sprintf("Synced to revision %d", status.Revision)
	}
	return syncstatus.Summary(record)
}

// commandFor returns the command that does what a record needs, or shows it.
func commandFor(record *v1alpha1.SyncStatus, event v1alpha1.NotificationEvent) string {
	switch event {
	case v1alpha1.NotifyConflicted:
		return command(record.Namespace, "resolve %s", record.Spec.Subject.Name)
	case v1alpha1.NotifyFailed:
		return command(record.Namespace, "retry %s", record.Name)
	}
	return "kubectl get syncstatus " + record.Name + " -n " + record.Namespace
}

// addConflicts adds the workloads and fields in conflict.
func addConflicts(n *message.Notification, conflicts []v1alpha1.WorkloadConflict) {
	if len(conflicts) == 0 {
		return
	}
	n.Names, n.Summary = nil, nil
	for _, conflict := range conflicts {
		if len(n.Names) < message.MaxNames {
			n.Names = append(n.Names, conflict.Name)
		}
		for _, field := range conflict.Fields {
			if len(n.Fields) == message.MaxFields {
				n.MoreFields++
				continue
			}
			n.Fields = append(n.Fields, message.Field{Path: field.Field, Type: string(v1alpha1.ChangeChanged)})
		}
	}
}

// authorsOf returns the authors of the changes of a record.
func authorsOf(record *v1alpha1.SyncStatus) []message.Author {
	var authors []message.Author
	for _, author := range first(record.Status.ChangedBy) {
		if name := cmp.Or(author.Username, author.FieldManager); name != "" {
			authors = append(authors, message.Author{Name: name, Signal: string(author.Signal)})
		}
	}
	return authors
}

func commitsOf(record *v1alpha1.SyncStatus) []message.Commit {
	var commits []message.Commit
	for _, commit := range first(record.Status.Commits) {
		commits = append(commits, message.Commit{SHA: commit.SHA, URL: commit.URL})
	}
	return commits
}

// first returns as many elements of a list as a notification has names.
func first[T any](list []T) []T { return list[:min(len(list), message.MaxNames)] }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
