// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Limits of a Message. They bound its size whatever has happened: at most 100 notifications of about 8 KiB each.
const (
	// MaxNotifications is the number of notifications that a message lists; the others are counted.
	MaxNotifications = 100
	// MaxFields is the number of changed fields that a notification lists; the others are counted.
	MaxFields = 20
	// MaxValue is the length, in bytes, of a field's value before or after.
	MaxValue = 200
	// MaxNames is the number of authors and commits of a notification.
	MaxNames = 5
	// MaxText is the length, in bytes, of a sentence such as an error.
	MaxText = 512
)

// Message is sent to a receiver at once: one or more notifications.
type Message struct {
	// ID identifies the message. It is the same whenever the message is sent again.
	ID string
	// Time is when the message was made.
	Time time.Time
	// Cluster is the name of the cluster.
	Cluster string
	// Notifications are in the order of time. There are 1 to MaxNotifications.
	Notifications []Notification
	// Counts have all notifications by their event, those that are not in Notifications included, in the order of the events.
	Counts []Count
	// Thread identifies the subject of all notifications. It is empty if they have different subjects.
	Thread string
	// Title and Text replace what the format would write, if a template made them.
	Title, Text string
	// Test is set in a message that a user requested as a test.
	Test bool
}

// Count is the number of notifications of a kind.
type Count struct {
	Event v1alpha1.NotificationEvent `json:"event"`
	// Recovered is set for the end of failures.
	Recovered bool `json:"recovered,omitempty"`
	Count     int  `json:"count"`
}

// Total returns the number of notifications, those that are only counted included.
func (m *Message) Total() int {
	total := 0
	for _, count := range m.Counts {
		total += count.Count
	}
	return total
}

// IsDigest reports whether the message is about several subjects, or has more than one notification.
func (m *Message) IsDigest() bool { return m.Total() > 1 }

// Severity returns the highest severity of the notifications.
func (m *Message) Severity() v1alpha1.NotificationSeverity {
	highest := v1alpha1.SeverityInfo
	for i := range m.Notifications {
		if s := m.Notifications[i].Severity; Rank(s) > Rank(highest) {
			highest = s
		}
	}
	return highest
}

// Rank orders severities.
func Rank(severity v1alpha1.NotificationSeverity) int {
	switch severity {
	case v1alpha1.SeverityError:
		return 2
	case v1alpha1.SeverityWarning:
		return 1
	}
	return 0
}

// Notification is one thing that happened. Its JSON is the data of the CloudEvents of webhooks.
type Notification struct {
	// ID identifies the notification. It is the same whenever the notification is sent again.
	ID string `json:"id"`
	// Event is the kind of the notification.
	Event v1alpha1.NotificationEvent `json:"event"`
	// Recovered is set if what Event says has ended.
	Recovered bool `json:"recovered,omitempty"`
	// Reminder is 0, or the number of the reminder.
	Reminder int `json:"reminder,omitempty"`
	// Repeated is how often the same has happened since the last notification of it, without this one.
	Repeated int `json:"repeated,omitempty"`
	// Time is when it happened.
	Time     time.Time                     `json:"time"`
	Severity v1alpha1.NotificationSeverity `json:"severity"`
	Cluster  string                        `json:"cluster"`
	Subject  Subject                       `json:"subject"`
	// State is the sentence that kubectl and the page show as the state of the subject. Empty for a Change.
	State string `json:"state,omitempty"`
	// Headline is one line that says what happened, such as: Environment teams/alice: 3 workloads changed.
	Headline string `json:"headline"`
	// Summary counts what changed by type.
	Summary []Changed `json:"summary,omitempty"`
	// Names are the names of the changed workloads, at most MaxNames.
	Names []string `json:"names,omitempty"`
	// ChangedBy are the authors of the changes, at most MaxNames.
	ChangedBy []Author `json:"changedBy,omitempty"`
	// Actor is the user who requested what happened.
	Actor string `json:"actor,omitempty"`
	// Reason is why the change was made, as its author wrote it.
	Reason string `json:"reason,omitempty"`
	// ManagedBy is what manages a changed object, such as Flux Kustomization flux-system/apps.
	ManagedBy string `json:"managedBy,omitempty"`
	// Error is what went wrong.
	Error string `json:"error,omitempty"`
	// Commits contain the change, at most MaxNames.
	Commits []Commit `json:"commits,omitempty"`
	// Fields are the changed fields, at most MaxFields.
	Fields []Field `json:"fields,omitempty"`
	// MoreFields is the number of further changed fields.
	MoreFields int `json:"moreFields,omitempty"`
	// Command is the command that shows more, or does what is needed, such as: kubectl slipstream sync alice -n teams.
	Command string `json:"command,omitempty"`
	// Link is the URL of the subject. Empty without a template.
	Link string `json:"link,omitempty"`
	// DedupeKey identifies what happened, so that a receiver can combine the failure, its reminders and its end.
	DedupeKey string `json:"dedupeKey"`
	// Sequence increases with each notification of a sink.
	Sequence int64 `json:"sequence"`
}

// Subject is the object that a notification is about.
type Subject struct {
	// Kind of the object, such as Environment. A Change is about the changed object.
	Kind string `json:"kind"`
	// APIVersion of the object, such as configbutler.ai/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Namespace of the object. Empty if it is cluster-scoped.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// UID of the object. Empty if it is not known.
	UID string `json:"uid,omitempty"`
}

// Changed counts changed objects of a type.
type Changed struct {
	Type    string `json:"type"`
	Added   int    `json:"added,omitempty"`
	Changed int    `json:"changed,omitempty"`
	Removed int    `json:"removed,omitempty"`
}

// Author made a change.
type Author struct {
	// Name is the user, or the field manager if no user is known.
	Name string `json:"name"`
	// Signal is how the author is known: Audit, Admission, ManagedFields or Unknown.
	Signal string `json:"signal"`
}

// Commit is a commit that contains the change.
type Commit struct {
	// SHA is the hash in hexadecimal.
	SHA string `json:"sha"`
	// URL links to the commit. Empty without a template in the GitRepoConfig.
	URL string `json:"url,omitempty"`
}

// Field is a changed field.
type Field struct {
	// Path is a JSON pointer, with items of lists by their keys.
	Path string `json:"path"`
	// Type is Added, Changed or Removed. Empty if only the path is known.
	Type string `json:"type,omitempty"`
	// Before and After are values as JSON, at most MaxValue bytes each. Absent if there is none, or it is not shown.
	Before *string `json:"before,omitempty"`
	After  *string `json:"after,omitempty"`
	// Hidden is set if the values are not shown.
	Hidden bool `json:"hidden,omitempty"`
}
