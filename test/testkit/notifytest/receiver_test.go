// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifytest_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/notifytest"
)

// Receivers find what the vendors would reject.
func TestFaults(t *testing.T) {
	slack := func(blocks string) string { return `{"text":"a","blocks":[` + blocks + `]}` }
	section := func(text string) string { return `{"type":"section","text":{"type":"mrkdwn","text":"` + text + `"}}` }
	card := func(body string) string {
		return `{"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive",` +
			`"content":{"type":"AdaptiveCard","version":"1.4","body":[` + body + `]}}]}`
	}
	for name, tt := range map[string]struct {
		start func(testing.TB) *notifytest.Receiver
		body  string
		// want is a part of the fault, or empty for a valid message.
		want string
	}{
		"slack":                  {notifytest.Slack, slack(section("a")), ""},
		"slack, not JSON":        {notifytest.Slack, "a", "not one JSON object"},
		"slack, no text":         {notifytest.Slack, `{"blocks":[` + section("a") + `]}`, "message.text is missing"},
		"slack, unknown field":   {notifytest.Slack, `{"text":"a","blocks":[` + section("a") + `],"color":"red"}`, "message.color is unknown"},
		"slack, channel":         {notifytest.Slack, `{"text":"a","blocks":[` + section("a") + `],"channel":"C1"}`, "message.channel is unknown"},
		"slack, unknown block":   {notifytest.Slack, slack(`{"type":"card"}`), `has the type "card"`},
		"slack, 51 blocks":       {notifytest.Slack, slack(strings.Repeat(`{"type":"divider"},`, 50) + `{"type":"divider"}`), "list of 1 to 50"},
		"slack, long header":     {notifytest.Slack, slack(`{"type":"header","text":{"type":"plain_text","text":"` + strings.Repeat("x", 151) + `"}}`), "1 to 150 characters"},
		"slack, long section":    {notifytest.Slack, slack(section(strings.Repeat("x", 3001))), "1 to 3000 characters"},
		"slack, long in all":     {notifytest.Slack, slack(strings.Repeat(section(strings.Repeat("x", 3000))+",", 4) + section(strings.Repeat("x", 3000))), "15000 characters"},
		"slack, mention":         {notifytest.Slack, slack(section("<!channel>")), "mentions or links"},
		"slack, link to nothing": {notifytest.Slack, slack(`{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"link","url":"javascript:x"}]}]}`), "must be a URL"},
		"teams":                  {notifytest.Teams, card(`{"type":"TextBlock","text":"a"}`), ""},
		"teams, no attachment":   {notifytest.Teams, `{"type":"message","text":"a"}`, "message(message).attachments is missing"},
		"teams, unknown element": {notifytest.Teams, card(`{"type":"Table"}`), `has the type "Table"`},
		"teams, unknown color":   {notifytest.Teams, card(`{"type":"TextBlock","text":"a","color":"Red"}`), "color is Red"},
		"teams, too large":       {notifytest.Teams, card(`{"type":"TextBlock","text":"` + strings.Repeat("x", 28<<10) + `"}`), "must be at most 28672"},
	} {
		t.Run(name, func(t *testing.T) {
			receiver := tt.start(t)
			status := post(t, receiver, tt.body)
			faults := strings.Join(receiver.Faults(), "\n")
			if !strings.Contains(faults, tt.want) || (tt.want == "") != (faults == "") || (tt.want == "") != (status/100 == 2) {
				t.Errorf("%d, faults %q, want %q", status, faults, tt.want)
			}
		})
	}
}

// A webhook wants an event with the signatures of all secrets.
func TestSignatures(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	// The example of the specification of Standard Webhooks.
	example := []string{
		"Ce-Specversion", "1.0", "Ce-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "Ce-Source", "/a", "Ce-Type", "a.b", "Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek",
		"Webhook-Timestamp", "1614265330",
	}
	const body = `{"test": 2432232314}`
	for name, tt := range map[string]struct {
		secrets []string
		header  []string
		want    string
	}{
		"no signature":    {[]string{secret}, example, "missing required headers"},
		"wrong signature": {[]string{secret}, append(example, "Webhook-Signature", "v1,AAAA"), "no matching signature"},
		"not expected":    {nil, append(example, "Webhook-Signature", "v1,AAAA"), "unexpected signature"},
		"other id":        {nil, append(example[:len(example):len(example)], "Webhook-Id", "b"), "id of the webhook"},
		"no event":        {nil, []string{"Webhook-Id", "a"}, "not a"},
		"unsigned":        {nil, example, ""},
	} {
		t.Run(name, func(t *testing.T) {
			receiver := notifytest.Webhook(t, tt.secrets...)
			post(t, receiver, body, tt.header...)
			if faults := strings.Join(receiver.Faults(), "\n"); !strings.Contains(faults, tt.want) || (tt.want == "") != (faults == "") {
				t.Errorf("faults = %q, want %q", faults, tt.want)
			}
		})
	}
}

// post sends JSON and returns the status.
func post(t *testing.T, receiver *notifytest.Receiver, body string, header ...string) int {
	t.Helper()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(receiver.CABundle())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, receiver.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(fmt.Errorf("post: %w", err))
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
