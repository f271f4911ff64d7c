// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/cloudevent"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// maxCloudEventBody bounds the data. Brokers commonly have a limit of 1 MB.
const maxCloudEventBody = 1 << 20

// maxAttribute bounds attributes, in bytes before they are escaped.
const maxAttribute = 600

// typePrefix precedes the types of all CloudEvents.
const typePrefix = "ai.configbutler."

// typeDigest is the type of a CloudEvent with several notifications, typeOther that of unknown events.
const (
	typeDigest = typePrefix + "digest"
	typeOther  = typePrefix + "notification"
)

// digestData is the data of a digest.
type digestData struct {
	// Title is that of the message.
	Title string `json:"title"`
	// Count is the number of notifications, and Counts has it by event. Notifications has the
	// first of them: at most MaxNotifications, and what fits.
	Count         int                    `json:"count"`
	Counts        []message.Count        `json:"counts"`
	Notifications []message.Notification `json:"notifications"`
	Test          bool                   `json:"test,omitempty"`
}

// notificationData is the data of a single notification.
type notificationData struct {
	message.Notification
	// Title and Text were written by a template.
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`
	Test  bool   `json:"test,omitempty"`
}

// CloudEvent returns a message as a CloudEvent 1.0 over HTTP in binary mode: its attributes are in the header, its data in the
// body. source is the attribute of that name, a URI.
func CloudEvent(m *message.Message, source string) (header http.Header, body []byte, err error) {
	attributes, write := digestAttributes(m), func(items int) ([]byte, error) { return encode(digestOf(m, items)) }
	if !isDigest(m) && len(m.Notifications) == 1 {
		attributes, write = notificationAttributes(m), func(int) ([]byte, error) { return encode(notificationOf(m)) }
	}
	if body, err = fit(items(m, message.MaxNotifications), maxCloudEventBody, write); err != nil {
		return nil, nil, fmt.Errorf("failed to encode a CloudEvent: %w", err)
	}
	attributes["source"], attributes["id"], attributes["specversion"] = source, summary.Cut(m.ID, maxAttribute), "1.0"
	header = http.Header{"Content-Type": {"application/json"}}
	cloudevent.SetAttributes(header, attributes)
	return header, body, nil
}

func notificationAttributes(m *message.Message) map[string]string {
	n := m.Notifications[0].Bounded()
	return map[string]string{"type": eventTypeName(n.Event, n.Recovered), "subject": subjectAttribute(n.Subject), "time": timestamp(n.Time)}
}

func notificationOf(m *message.Message) notificationData {
	data := notificationData{Notification: m.Notifications[0].Bounded(), Test: m.Test}
	if m.Title != "" {
		data.Title = message.Title(m)
	}
	if m.Text != "" {
		data.Text = m.View().Text
	}
	return data
}

func digestAttributes(m *message.Message) map[string]string {
	attributes := map[string]string{"type": typeDigest, "time": timestamp(m.Time)}
	if m.Thread != "" && len(m.Notifications) > 0 {
		attributes["subject"] = subjectAttribute(m.Notifications[0].Bounded().Subject)
	}
	return attributes
}

// digestOf returns the data of a digest with the first notifications.
func digestOf(m *message.Message, notifications int) digestData {
	data := digestData{Title: message.Title(m), Count: m.Total(), Counts: m.Counts, Notifications: []message.Notification{}, Test: m.Test}
	for i := range m.Notifications[:min(len(m.Notifications), notifications)] {
		data.Notifications = append(data.Notifications, m.Notifications[i].Bounded())
	}
	return data
}

// timestamp returns a time in RFC 3339. Empty if it is not set.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// subjectAttribute returns a subject such as Environment/teams/alice.
func subjectAttribute(s message.Subject) string {
	return summary.Cut(joinNonEmpty("/", s.Kind, s.Namespace, s.Name), maxAttribute)
}

// eventTypeName returns the type of a CloudEvent, such as ai.configbutler.catalog.failing or ai.configbutler.catalog.recovered.
func eventTypeName(event v1alpha1.NotificationEvent, recovered bool) string {
	object, what := eventParts(event)
	switch {
	case object == "":
		return typeOther
	case recovered && object != "sync" && object != "change":
		what = "recovered"
	case recovered:
		what += ".recovered" // sync.failed and sync.conflicted end separately
	}
	return typePrefix + object + "." + what
}

// eventParts returns what an event is about, and what has happened to it. They are empty if the event is unknown.
func eventParts(event v1alpha1.NotificationEvent) (object, what string) {
	switch event {
	case v1alpha1.NotifyPrompted, v1alpha1.NotifyCompleted, v1alpha1.NotifyFailed, v1alpha1.NotifyConflicted, v1alpha1.NotifyDismissed:
		return "sync", strings.ToLower(string(event))
	case v1alpha1.NotifyChange:
		return "change", "recorded"
	case v1alpha1.NotifyBypass:
		return "change", "bypass"
	case v1alpha1.NotifyDestinationFailing:
		return "destination", "failing"
	case v1alpha1.NotifyOwnershipConflict:
		return "ownership", "conflict"
	case v1alpha1.NotifyCatalogFailing:
		return "catalog", "failing"
	case v1alpha1.NotifyPipelineFailing:
		return "pipeline", "failing"
	}
	return "", ""
}
