// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cloudhttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// received returns a message as the CloudEvents SDK reads it.
func received(t *testing.T, m *message.Message) *cloudevents.Event {
	t.Helper()
	header, body, err := format.CloudEvent(m, "/sink")
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	request.Header = header
	event, err := cloudhttp.NewEventFromHTTPRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := event.Validate(); err != nil {
		t.Errorf("event is invalid: %v", err)
	}
	return event
}

func TestCloudEventTypes(t *testing.T) {
	const prefix = "ai.configbutler."
	for event, want := range map[v1alpha1.NotificationEvent][2]string{
		v1alpha1.NotifyPrompted:           {"sync.prompted", "sync.prompted.recovered"},
		v1alpha1.NotifyCompleted:          {"sync.completed", "sync.completed.recovered"},
		v1alpha1.NotifyFailed:             {"sync.failed", "sync.failed.recovered"},
		v1alpha1.NotifyConflicted:         {"sync.conflicted", "sync.conflicted.recovered"},
		v1alpha1.NotifyDismissed:          {"sync.dismissed", "sync.dismissed.recovered"},
		v1alpha1.NotifyChange:             {"change.recorded", "change.recorded.recovered"},
		v1alpha1.NotifyBypass:             {"change.bypass", "change.bypass.recovered"},
		v1alpha1.NotifyDestinationFailing: {"destination.failing", "destination.recovered"},
		v1alpha1.NotifyOwnershipConflict:  {"ownership.conflict", "ownership.recovered"},
		v1alpha1.NotifyCatalogFailing:     {"catalog.failing", "catalog.recovered"},
		v1alpha1.NotifyPipelineFailing:    {"pipeline.failing", "pipeline.recovered"},
		"Later":                           {"notification", "notification"},
	} {
		for i, recovered := range []bool{false, true} {
			n := message.Sample(event, recovered, noon)
			if got := received(t, about(n)).Type(); got != prefix+want[i] {
				t.Errorf("type of %s, recovered %v, is %s, want %s", event, recovered, got, prefix+want[i])
			}
		}
	}
}

func TestCloudEventData(t *testing.T) {
	sent := sample(v1alpha1.NotifyChange)
	event := received(t, about(sent))
	var got message.Notification
	if err := json.Unmarshal(event.Data(), &got); err != nil {
		t.Fatal(err)
	}
	if want, _ := json.Marshal(sent); !bytes.Equal(want, event.Data()) || got.Subject != sent.Subject {
		t.Errorf("data = %s, want %s", event.Data(), want)
	}
	if event.Subject() != "Deployment/shop/web" || event.Source() != "/sink" || !event.Time().Equal(noon) {
		t.Errorf("event = %v", event)
	}

	event = received(t, large())
	var digest struct {
		Count         int
		Counts        []message.Count
		Notifications []message.Notification
	}
	if err := json.Unmarshal(event.Data(), &digest); err != nil {
		t.Fatal(err)
	}
	if event.Type() != "ai.configbutler.digest" || digest.Count != 10000 || len(digest.Counts) != 2 || len(digest.Notifications) != 100 {
		t.Errorf("%s with %d, %v and %d notifications", event.Type(), digest.Count, digest.Counts, len(digest.Notifications))
	}
}
