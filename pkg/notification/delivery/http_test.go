// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
)

const (
	botToken = "xoxb-12345-s3cret-token"
	key1     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	key2     = "whsec_c2Vjb25kIGtleSBvZiBhIHJvdGF0aW9uLCAzMiBieXRlcyE="
)

// hostOf returns the host of a receiver.
func hostOf(f *fixture, receiver *notifytest.Receiver) string {
	f.Helper()
	u, err := url.Parse(receiver.URL)
	if err != nil {
		f.Fatal(err)
	}
	return u.Host
}

// slackWebhook returns a fixture with an incoming webhook.
func slackWebhook(t *testing.T) (*fixture, *notifytest.Receiver) {
	f, receiver := newFixture(t), notifytest.Slack(t)
	f.sink.Spec.Slack = &v1alpha1.SlackSink{SecretRef: secretRef, APIURL: "https://slack.com/api", CABundle: receiver.CABundle()}
	f.secret(map[string]string{"url": receiver.URL})
	f.secrets = append(f.secrets, notifytest.SlackPath, "xYz0SlackWebhookCredential")
	return f, receiver
}

// slackBot returns a fixture with a bot.
func slackBot(t *testing.T) (*fixture, *notifytest.Receiver) {
	f, receiver := newFixture(t), notifytest.SlackAPI(t, botToken)
	f.sink.Spec.Slack = &v1alpha1.SlackSink{SecretRef: secretRef, Channel: "C024BE91L", APIURL: receiver.URL, CABundle: receiver.CABundle()}
	f.secret(map[string]string{"token": botToken + "\n"})
	return f, receiver
}

func teamsWorkflow(t *testing.T) (*fixture, *notifytest.Receiver) {
	f, receiver := newFixture(t), notifytest.Teams(t)
	f.sink.Spec.Teams = &v1alpha1.TeamsSink{SecretRef: secretRef, CABundle: receiver.CABundle()}
	f.secret(map[string]string{"url": receiver.URL})
	f.secrets = append(f.secrets, notifytest.TeamsPath, "s1gnatureOfTheWorkflow", "0123456789abcdef")
	return f, receiver
}

// signedWebhook returns a fixture with a webhook that wants signatures with all keys.
func signedWebhook(t *testing.T, keys ...string) (*fixture, *notifytest.Receiver) {
	f, receiver := newFixture(t), notifytest.Webhook(t, keys...)
	f.sink.Spec.Webhook = &v1alpha1.WebhookSink{URL: receiver.URL, CABundle: receiver.CABundle()}
	if len(keys) > 0 {
		f.sink.Spec.Webhook.SecretRef = &secretRef
		f.secret(map[string]string{"secret": strings.Join(keys, " "), "token": "t0ken-of-the-webhook"})
	}
	return f, receiver
}

// fixtures are all receivers over HTTP.
func fixtures() map[string]func(t *testing.T) (*fixture, *notifytest.Receiver) {
	return map[string]func(t *testing.T) (*fixture, *notifytest.Receiver){
		"slack webhook": slackWebhook, "slack bot": slackBot, "teams": teamsWorkflow,
		"webhook":             func(t *testing.T) (*fixture, *notifytest.Receiver) { return signedWebhook(t, key1) },
		"webhook, rotating":   func(t *testing.T) (*fixture, *notifytest.Receiver) { return signedWebhook(t, key1, key2) },
		"webhook, not signed": func(t *testing.T) (*fixture, *notifytest.Receiver) { return signedWebhook(t) },
	}
}

// Every message is accepted by a receiver that checks it against what the vendor documents.
func TestReceiversAcceptMessages(t *testing.T) {
	for name, start := range fixtures() {
		t.Run(name, func(t *testing.T) {
			f, receiver := start(t)
			sent := f.receiver()
			messages := []*message.Message{about(message.Events()...)}
			for _, event := range message.Events() {
				messages = append(messages, about(event))
			}
			for _, m := range messages {
				if got := f.deliverTo(t.Context(), sent, m, ""); got.Outcome != delivery.Delivered || got.Thread != "" || got.RetryAfter != 0 {
					t.Errorf("%s: %+v", m.Notifications[0].Event, got)
				}
			}
			requests := receiver.Requests()
			if len(requests) != len(messages) {
				t.Errorf("%d requests for %d messages", len(requests), len(messages))
			}
			if got := requests[0].Header.Get("User-Agent"); got != "slipstream" {
				t.Errorf("User-Agent = %q", got)
			}
		})
	}
}

// Statuses that a user can repair are retried; those about the content reject the message.
func TestStatuses(t *testing.T) {
	for name, tt := range map[string]struct {
		start  func(t *testing.T) (*fixture, *notifytest.Receiver)
		answer notifytest.Answer
		want   delivery.Result
	}{
		"slack is busy": {slackWebhook, notifytest.Answer{Status: 429, Header: map[string]string{"Retry-After": "30"}}, delivery.Result{
			Outcome: delivery.Retry, RetryAfter: 30 * time.Second, Message: "429 Too Many Requests",
		}},
		"slack is broken": {slackWebhook, notifytest.Answer{Status: 500, Body: "rollup_error"}, delivery.Result{
			Outcome: delivery.Retry, Message: "500 Internal Server Error: rollup_error",
		}},
		"slack has deleted the webhook": {slackWebhook, notifytest.Answer{Status: 404, Body: "no_service"}, delivery.Result{
			Outcome: delivery.Retry, Message: "HOST does not know url in the Secret teams/receiver: 404 Not Found: no_service",
		}},
		"slack has archived the channel": {slackWebhook, notifytest.Answer{Status: 410, Body: "channel_is_archived"}, delivery.Result{
			Outcome: delivery.Retry, Message: "HOST does not know url in the Secret teams/receiver: 410 Gone: channel_is_archived",
		}},
		"slack forbids it": {slackWebhook, notifytest.Answer{Status: 403, Body: "action_prohibited"}, delivery.Result{
			Outcome: delivery.Retry, Message: "HOST refuses the credentials: 403 Forbidden: action_prohibited",
		}},
		"slack knows no such user": {slackWebhook, notifytest.Answer{Status: 400, Body: "user_not_found"}, delivery.Result{
			Outcome: delivery.Retry, Message: "400 Bad Request: user_not_found",
		}},
		"slack rejects the message": {slackWebhook, notifytest.Answer{Status: 400, Body: "invalid_payload"}, delivery.Result{
			Outcome: delivery.Rejected, Message: "400 Bad Request: invalid_payload",
		}},
		"slack quotes the path": {slackWebhook, notifytest.Answer{Status: 502, Body: "cannot POST " + notifytest.SlackPath}, delivery.Result{
			Outcome: delivery.Retry, Message: "502 Bad Gateway: cannot POST [REDACTED]",
		}},
		"slack quotes a part": {slackWebhook, notifytest.Answer{Status: 502, Body: "B0456EFGH/xYz0SlackWebhookCredential is down"}, delivery.Result{
			Outcome: delivery.Retry, Message: "502 Bad Gateway: [REDACTED]/[REDACTED] is down",
		}},
		"slack redirects": {slackWebhook, notifytest.Answer{Status: 302, Header: map[string]string{"Location": "https://example.com/"}}, delivery.Result{
			Outcome: delivery.Retry,
			Message: "redirects are not followed; put the address to which it points into url in the Secret teams/receiver: 302 Found",
		}},
		"teams rejects the message": {teamsWorkflow, notifytest.Answer{Status: 400, Body: "TriggerInputSchemaMismatch"}, delivery.Result{
			Outcome: delivery.Rejected, Message: "400 Bad Request: TriggerInputSchemaMismatch",
		}},
		"teams finds it too large": {teamsWorkflow, notifytest.Answer{Status: 413}, delivery.Result{
			Outcome: delivery.Rejected, Message: "413 Request Entity Too Large",
		}},
		"the workflow is turned off": {teamsWorkflow, notifytest.Answer{Status: 400, Body: `{"code":"WorkflowTriggerIsNotEnabled"}`}, delivery.Result{
			Outcome: delivery.Retry, Message: `400 Bad Request: {"code":"WorkflowTriggerIsNotEnabled"}`,
		}},
		"teams refuses the signature": {teamsWorkflow, notifytest.Answer{Status: 401, Body: "sig=s1gnatureOfTheWorkflow"}, delivery.Result{
			Outcome: delivery.Retry, Message: "HOST refuses the credentials: 401 Unauthorized: sig=[REDACTED]",
		}},
		"the webhook quotes credentials": {
			func(t *testing.T) (*fixture, *notifytest.Receiver) { return signedWebhook(t, key1) },
			notifytest.Answer{Status: 401, Body: "Bearer t0ken-of-the-webhook " + key1},
			delivery.Result{Outcome: delivery.Retry, Message: "HOST refuses the credentials: 401 Unauthorized: Bearer [REDACTED] whsec_[REDACTED]"},
		},
		"the webhook rejects the event": {
			func(t *testing.T) (*fixture, *notifytest.Receiver) { return signedWebhook(t) },
			notifytest.Answer{Status: 422, Body: "unknown\ntype"},
			delivery.Result{Outcome: delivery.Rejected, Message: "422 Unprocessable Entity: unknown type"},
		},
		"connection lost": {slackWebhook, notifytest.Answer{Lost: true}, delivery.Result{
			Outcome: delivery.Retry, Message: "the call to HOST failed: EOF",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f, receiver := tt.start(t)
			// The transport repeats a request if a connection is lost.
			receiver.Next(tt.answer, tt.answer, tt.answer)
			f.expect(hostOf(f, receiver), tt.want)
		})
	}
}

// The API of Slack responds with 200 whatever happened.
func TestSlackErrors(t *testing.T) {
	for code, tt := range map[string]struct {
		outcome delivery.Outcome
		text    string
	}{
		"ratelimited":     {delivery.Retry, "Slack: ratelimited"},
		"not_in_channel":  {delivery.Retry, "Slack: not_in_channel; invite the bot to the channel C024BE91L"},
		"is_archived":     {delivery.Retry, "Slack: is_archived; the channel is archived: name another one"},
		"invalid_auth":    {delivery.Retry, "Slack: invalid_auth; replace the token in the Secret teams/receiver"},
		"missing_scope":   {delivery.Retry, "Slack: missing_scope; the token in the Secret teams/receiver needs the scope chat:write"},
		"fatal_error":     {delivery.Retry, "Slack: fatal_error"},
		"":                {delivery.Retry, "Slack: no error given"},
		"msg_too_long":    {delivery.Rejected, "Slack: msg_too_long"},
		"invalid_blocks":  {delivery.Rejected, "Slack: invalid_blocks"},
		botToken + " bad": {delivery.Retry, "Slack: [REDACTED] bad"},
	} {
		t.Run(code, func(t *testing.T) {
			f, receiver := slackBot(t)
			receiver.Next(notifytest.Answer{Status: 200, Body: `{"ok":false,"error":"` + code + `"}`})
			f.expect("", delivery.Result{Outcome: tt.outcome, Message: tt.text})
		})
	}
	f, receiver := slackBot(t)
	receiver.Next(notifytest.Answer{Status: 200, Body: "<html>welcome</html>"})
	f.expect(hostOf(f, receiver), delivery.Result{
		Outcome: delivery.Retry, Message: "HOST does not respond as the API of Slack; is slack.apiURL right?",
	})
}

// Messages about one subject are in one thread.
func TestSlackThread(t *testing.T) {
	f, receiver := slackBot(t)
	first := f.deliver(threaded("1"), "")
	second := f.deliver(threaded("2"), first.Thread)
	if first.Outcome != delivery.Delivered || first.Thread == "" || second.Outcome != delivery.Delivered || second.Thread != first.Thread {
		t.Fatalf("first = %+v, second = %+v", first, second)
	}
	if body := string(receiver.Requests()[1].Body); !strings.Contains(body, `"thread_ts":"1503435956.000001"`) {
		t.Errorf("second message is not in the thread: %s", body)
	}
	// A thread that is locked ends, and another begins.
	receiver.Next(notifytest.Answer{Status: 200, Body: `{"ok":false,"error":"restricted_action_thread_locked"}`})
	third := f.deliver(threaded("3"), first.Thread)
	if third.Outcome != delivery.Delivered || third.Thread == "" || third.Thread == first.Thread {
		t.Errorf("third = %+v", third)
	}
	// A thread means nothing in another channel.
	f.sink.Spec.Slack.Channel = "C0OTHER"
	if other := f.deliver(threaded("4"), first.Thread); other.Outcome != delivery.Delivered || other.Thread == first.Thread {
		t.Errorf("in another channel: %+v", other)
	}
}

// A message that is sent again has the same ID and a valid signature.
func TestWebhookRepeats(t *testing.T) {
	f, receiver := signedWebhook(t, key1)
	receiver.Next(notifytest.Answer{Status: 503})
	m := about(v1alpha1.NotifyFailed)
	if got := f.deliver(m, ""); got.Outcome != delivery.Retry {
		t.Fatalf("got %+v", got)
	}
	if got := f.deliver(m, ""); got.Outcome != delivery.Delivered {
		t.Fatalf("got %+v", got)
	}
	requests := receiver.Requests()
	for _, request := range requests {
		if id := request.Header.Get("Webhook-Id"); id != m.ID {
			t.Errorf("id = %q, want %q", id, m.ID)
		}
		if at := request.Header.Get("Webhook-Timestamp"); at != "1795348800" {
			t.Errorf("timestamp = %q", at)
		}
		if got := request.Header.Get("Authorization"); got != "Bearer t0ken-of-the-webhook" {
			t.Errorf("Authorization = %q", got)
		}
	}
	if string(requests[0].Body) != string(requests[1].Body) {
		t.Error("repeated message is another one")
	}
}

// New credentials are used for the next message, without a new receiver.
func TestRotation(t *testing.T) {
	f, receiver := slackBot(t)
	f.secret(map[string]string{"token": "xoxb-old-token-revoked"})
	sent := f.receiver()
	if got := f.deliverTo(t.Context(), sent, about(v1alpha1.NotifyFailed), ""); got.Outcome != delivery.Retry {
		t.Errorf("with the old token: %+v", got)
	}
	f.secret(map[string]string{"token": botToken})
	if got := f.deliverTo(t.Context(), sent, about(v1alpha1.NotifyFailed), ""); got.Outcome != delivery.Delivered {
		t.Errorf("with the new token: %+v", got)
	}
	if got := len(receiver.Requests()); got != 2 {
		t.Errorf("%d requests", got)
	}
}

// Addresses that users must not reach are refused before anything is sent.
func TestRefusedAddress(t *testing.T) {
	for name, start := range fixtures() {
		t.Run(name, func(t *testing.T) {
			f, receiver := start(t)
			f.dial = (&egress.Policy{}).DialContext
			f.expect("", delivery.Result{
				Outcome: delivery.Retry, Message: "connections to 127.0.0.1 (loopback) are refused; --allow-destinations can allow them",
			})
			if got := receiver.Requests(); len(got) != 0 {
				t.Errorf("%d requests", len(got))
			}
		})
	}
}

func TestUnknownAuthority(t *testing.T) {
	f, receiver := teamsWorkflow(t)
	f.sink.Spec.Teams.CABundle = nil
	f.expect(hostOf(f, receiver), delivery.Result{
		Outcome: delivery.Retry,
		Message: "the certificate of HOST is signed by an authority that is not known: put that authority into caBundle",
	})
}
