// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
)

// inbox is a webhook without a Secret.
type inbox struct{ *notifytest.Receiver }

func newInbox(t *testing.T) inbox {
	t.Helper()
	return inbox{notifytest.Webhook(t)}
}

// sink returns the field webhook of a sink, with more fields of it.
func (i inbox) sink(lines ...string) string {
	lines = append([]string{"url: " + i.URL, "caBundle: " + base64.StdEncoding.EncodeToString(i.CABundle())}, lines...)
	return "webhook: {" + strings.Join(lines, ", ") + "}"
}

// letter is a message that a webhook received.
type letter struct {
	// ID is the same whenever the message is sent again.
	ID            string
	Count         int
	Notifications []message.Notification
}

// letters returns the received messages, each request once.
func (i inbox) letters() (letters []letter) {
	for _, request := range i.Requests() {
		one := letter{ID: request.Header.Get("Ce-Id")}
		var err error
		if request.Header.Get("Ce-Type") == "ai.configbutler.digest" {
			err = json.Unmarshal(request.Body, &one)
		} else {
			one.Count, one.Notifications = 1, make([]message.Notification, 1)
			err = json.Unmarshal(request.Body, &one.Notifications[0])
		}
		if err != nil {
			panic(fmt.Sprintf("%s: %v", request.Body, err)) // The receiver has checked that it is a CloudEvent.
		}
		letters = append(letters, one)
	}
	return letters
}

// notifications returns those of all messages. A message that was sent again counts once.
func (i inbox) notifications() (all []message.Notification) {
	var seen []string
	for _, letter := range i.letters() {
		if !slices.Contains(seen, letter.ID) {
			seen = append(seen, letter.ID)
			all = append(all, letter.Notifications...)
		}
	}
	return all
}

// lines describes notifications, such as "Completed Environment alice".
func lines(notifications []message.Notification) (lines []string) {
	for _, n := range notifications {
		line := string(n.Event)
		if n.Recovered {
			line += " ended"
		}
		lines = append(lines, line+" "+n.Subject.Kind+" "+n.Subject.Name)
	}
	return lines
}

// gets waits for a notification of an event about a subject for which a check holds.
func (i inbox) gets(t *testing.T, line string, checks ...func(*message.Notification) bool) (found message.Notification) {
	t.Helper()
	mirrortest.Eventually(t, "notification "+line, func(context.Context) error {
		all := i.notifications()
		for at, text := range lines(all) {
			if text == line && !slices.ContainsFunc(checks, func(is func(*message.Notification) bool) bool { return !is(&all[at]) }) {
				found = all[at]
				return nil
			}
		}
		text, _ := json.Marshal(all) // It has no values that cannot be encoded.
		return fmt.Errorf("received %q: %s", lines(all), text)
	})
	return found
}

// expect checks that no other notifications than those of the lines were received.
func (i inbox) expect(t *testing.T, want ...string) {
	t.Helper()
	got := lines(i.notifications())
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

// body returns all bytes that were received.
func (i inbox) body() string {
	var all strings.Builder
	for _, request := range i.Requests() {
		all.Write(request.Body)
	}
	return all.String()
}

// severity returns a check of the severity of a notification.
func severity(want v1alpha1.NotificationSeverity) func(*message.Notification) bool {
	return func(n *message.Notification) bool { return n.Severity == want }
}
