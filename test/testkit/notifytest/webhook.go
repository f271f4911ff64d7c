// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifytest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	cloudhttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Webhook starts a server that accepts CloudEvents which are signed with each of the secrets, as Standard Webhooks.
func Webhook(t testing.TB, secrets ...string) *Receiver {
	return start(t, "/hooks", func(request Request) (Answer, []string) {
		faults := append(checkCloudEvent(request), checkSignatures(request, secrets)...)
		if len(faults) > 0 {
			return Answer{Status: http.StatusBadRequest, Body: "invalid"}, faults
		}
		return Answer{Status: http.StatusNoContent}, nil
	})
}

// checkCloudEvent decodes an event with the SDK.
func checkCloudEvent(request Request) []string {
	event, err := cloudhttp.NewEventFromHTTPRequest(&http.Request{Header: request.Header, Body: io.NopCloser(bytes.NewReader(request.Body))})
	if err != nil {
		return []string{"not an event: " + err.Error()}
	}
	if err := event.Validate(); err != nil {
		return []string{"not a valid event: " + err.Error()}
	}
	if id := request.Header.Get("Webhook-Id"); id != event.ID() {
		return []string{fmt.Sprintf("the id of the webhook is %q, that of the event is %q", id, event.ID())}
	}
	return nil
}

// checkSignatures verifies a request with the library of Standard Webhooks. The times are those of the clock of the test.
func checkSignatures(request Request, secrets []string) (faults []string) {
	if signature := request.Header.Get("Webhook-Signature"); len(secrets) == 0 && signature != "" {
		return []string{"unexpected signature"}
	}
	for _, secret := range secrets {
		webhook, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return []string{err.Error()}
		}
		if err := webhook.VerifyIgnoringTimestamp(request.Body, request.Header); err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}
