// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// maxEventMessage is the limit of the API for the message of an Event, in bytes.
const maxEventMessage = 1024

// reasonRecovered is the reason of Events for the end of what an earlier one said, as for Events from conditions.
const reasonRecovered = "Recovered"

// reasonTest is the reason of Events that a user requested as a test.
const reasonTest = "Test"

// Event is an Event of Kubernetes.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is the event of the notification, such as Conflicted, or Recovered.
	Reason  string
	Message string
	Subject message.Subject
}

// Events returns an Event for each notification of a message, at most MaxNotifications.
func Events(m *message.Message) []Event {
	notifications := m.Notifications[:min(len(m.Notifications), message.MaxNotifications)]
	events := make([]Event, len(notifications))
	for i := range notifications {
		n := &notifications[i]
		events[i] = Event{Type: eventType(n), Reason: eventReason(m, n), Message: eventMessage(m, n), Subject: n.Bounded().Subject}
	}
	return events
}

func eventType(n *message.Notification) string {
	if n.Severity == v1alpha1.SeverityInfo || n.Recovered {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

func eventReason(m *message.Message, n *message.Notification) string {
	switch {
	case m.Test:
		return reasonTest
	case n.Recovered:
		return reasonRecovered
	}
	return summary.Cut(summary.Line(string(n.Event)), 128)
}

// eventMessage returns what happened to the subject of the Event on one line.
func eventMessage(m *message.Message, n *message.Notification) string {
	one := &message.Message{
		Notifications: []message.Notification{*n}, Counts: []message.Count{{Event: n.Event, Count: 1}}, Test: m.Test, Cluster: m.Cluster,
	}
	if !isDigest(m) {
		one.Title, one.Text = m.Title, m.Text
	}
	v := one.View()
	if v.Text != "" {
		return summary.Cut(summary.Line(v.Short+": "+v.Text), maxEventMessage)
	}
	text := v.Short
	for _, fact := range v.Facts {
		text = joinNonEmpty("; ", text, fact.Label+": "+fact.Text())
	}
	return summary.Cut(text, maxEventMessage)
}
