// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// received is what the receiver of notifications has accepted.
type received struct {
	// messages are the numbers of times that each message was accepted.
	messages map[string]int
	// notifications are the messages with each notification.
	notifications map[string]string
	// changes is the number of notified Changes, failures that of failures of destinations.
	changes, failures int
}

// checkNotifications checks that every Change of the sink's namespace was notified of, and every notification was in one message. A message
// can arrive again, with the same id, if the server could not store that it was accepted: when it was killed, or its disk was full.
func (s *soak) checkNotifications(t *testing.T, r *run) {
	t.Helper()
	want := len(s.changes(t, mirrored[0]))
	var got *received
	mirrortest.Eventually(t, "all Changes are notified of", func(ctx context.Context) error {
		var err error
		if got, err = s.received(); err != nil {
			t.Fatal(err)
		}
		if got.changes < want {
			return fmt.Errorf("%d of %d", got.changes, want)
		}
		return s.checkSink(ctx)
	})
	if got.changes > want {
		t.Errorf("%d Changes were notified of, there are %d", got.changes, want)
	}
	again := 0
	for _, times := range got.messages {
		again += times - 1
	}
	if most := r.counts["server killed"] + r.counts["disk full"]; again > most {
		t.Errorf("%d messages were accepted again, at most %d can be", again, most)
	}
	r.row("notifications of Changes", got.changes)
	r.row("notifications of failures", got.failures)
	r.row("messages", len(got.messages))
	r.row("messages accepted again", again)
}

// received reads the accepted messages. It returns an error if a notification is in two of them.
func (s *soak) received() (*received, error) {
	got := &received{messages: map[string]int{}, notifications: map[string]string{}}
	for _, request := range s.inbox.Requests() {
		id := request.Header.Get("Ce-Id")
		if request.Status != http.StatusNoContent {
			continue
		}
		if got.messages[id]++; got.messages[id] > 1 {
			continue
		}
		var digest struct {
			Counts        []message.Count
			Notifications []message.Notification
		}
		err := json.Unmarshal(request.Body, &digest)
		if request.Header.Get("Ce-Type") != "ai.configbutler.digest" {
			digest.Notifications = make([]message.Notification, 1)
			err = json.Unmarshal(request.Body, &digest.Notifications[0])
			digest.Counts = []message.Count{{Event: digest.Notifications[0].Event, Count: 1}}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", request.Body, err)
		}
		for _, count := range digest.Counts {
			if count.Event == v1alpha1.NotifyChange {
				got.changes += count.Count
			} else {
				got.failures += count.Count
			}
		}
		for i := range digest.Notifications {
			n := &digest.Notifications[i]
			if other, found := got.notifications[n.ID]; found {
				return nil, fmt.Errorf("notification %s is in the messages %s and %s", n.ID, other, id)
			}
			got.notifications[n.ID] = id
		}
	}
	return got, nil
}
