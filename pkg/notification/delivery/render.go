// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// Rendered is what a receiver is sent.
type Rendered struct {
	// Title and Text are the message as plain text.
	Title, Text string
	// Body is the JSON for Slack, Teams and webhooks, the HTML part of a mail, or the messages of Events, one on a line.
	Body string
	// ContentType is the media type of Body.
	ContentType string
}

const typeJSON = "application/json"

// Render returns what a sink with a spec sends.
func Render(spec *v1alpha1.NotificationSinkSpec, m *message.Message) (Rendered, error) {
	var r Rendered
	r.Title, r.Text = format.Text(m)
	var (
		body []byte
		err  error
	)
	switch {
	case spec.Slack != nil:
		body, err = format.Slack(m, spec.Slack.Channel, "")
		r.Body, r.ContentType = string(body), typeJSON
	case spec.Teams != nil:
		body, err = format.Teams(m)
		r.Body, r.ContentType = string(body), typeJSON
	case spec.Webhook != nil:
		_, body, err = format.CloudEvent(m, "")
		r.Body, r.ContentType = string(body), typeJSON
	case spec.Email != nil:
		r.Title, r.Text, r.Body = format.Mail(m)
		r.ContentType = "text/html"
	case spec.Event != nil:
		r.Body, r.ContentType = eventLines(m), "text/plain"
	default:
		return Rendered{}, errors.New("none of slack, teams, email, webhook and event is set")
	}
	return r, err
}

// eventLines returns the messages of Events.
func eventLines(m *message.Message) string {
	var lines []string
	for _, event := range format.Events(m) {
		lines = append(lines, event.Message)
	}
	return strings.Join(lines, "\n")
}
