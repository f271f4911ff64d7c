// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
)

func chat(f *fixture) {
	f.sink.Spec.Slack = &v1alpha1.SlackSink{SecretRef: secretRef, APIURL: "https://slack.com/api"}
}
func bot(f *fixture)    { chat(f); f.sink.Spec.Slack.Channel = "C024BE91L" }
func flow(f *fixture)   { f.sink.Spec.Teams = &v1alpha1.TeamsSink{SecretRef: secretRef} }
func signed(f *fixture) { f.sink.Spec.Webhook = &v1alpha1.WebhookSink{SecretRef: &secretRef} }
func account(f *fixture) {
	f.sink.Spec.Email = &v1alpha1.EmailSink{
		Host: "mail.example.com", TLS: v1alpha1.EmailStartTLS, SecretRef: &secretRef, From: "a@example.com", To: []string{"b@example.com"},
	}
}

// Secrets that cannot be used are reported, and nothing is sent.
func TestInvalidSecrets(t *testing.T) {
	const noURL = "the url in the Secret teams/receiver is not a URL with http:// or https:// and a host; write it again"
	longKey := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65))
	const noKey = "the secret in the Secret teams/receiver is not whsec_ and 24 to 64 bytes in base64; write it again"
	for name, tt := range map[string]struct {
		sink func(f *fixture)
		data map[string]string
		want string
	}{
		"slack, empty": {chat, map[string]string{}, "the Secret teams/receiver has no key url and no key token; add it"},
		"slack, no channel": {
			chat, map[string]string{"token": "xoxb"},
			"the Secret teams/receiver has a token, which needs slack.channel; set it, or put url into the Secret",
		},
		"slack, two lines": {
			bot, map[string]string{"token": "xo\nxb"},
			"the token in the Secret teams/receiver has characters that no header can have, such as a line break; write it again",
		},
		"slack, long token": {
			bot, map[string]string{"token": strings.Repeat("x", 20_000)},
			"what the Secret teams/receiver holds is longer than 16384 characters, which no header can be",
		},
		"slack, not a URL":         {chat, map[string]string{"url": "://T000/B000"}, noURL},
		"slack, only a path":       {chat, map[string]string{"url": "/services/T000/B000"}, noURL},
		"slack, other scheme":      {chat, map[string]string{"url": "ftp://hooks.example.com/services/B000"}, noURL},
		"slack, control character": {chat, map[string]string{"url": "https://hooks.example.com/\x7f"}, noURL},
		"slack, user": {
			chat, map[string]string{"url": "https://jane:pass@hooks.example.com/"},
			"the url in the Secret teams/receiver has a user; put credentials into other keys",
		},
		"slack, long URL": {
			chat, map[string]string{"url": "https://example.com/" + strings.Repeat("x", 2048)},
			"the url in the Secret teams/receiver is longer than 2048 bytes; write it again",
		},
		"teams, no URL":       {flow, map[string]string{"token": "x"}, "the Secret teams/receiver has no key url; add it"},
		"webhook, no URL":     {signed, map[string]string{"secret": key1}, "the Secret teams/receiver has no key url; add it"},
		"webhook, no prefix":  {signed, map[string]string{"secret": strings.TrimPrefix(key1, "whsec_")}, noKey},
		"webhook, short key":  {signed, map[string]string{"secret": key1 + " whsec_c2hvcnQ="}, noKey},
		"webhook, long key":   {signed, map[string]string{"secret": longKey}, noKey},
		"webhook, not base64": {signed, map[string]string{"secret": "whsec_=" + key1}, noKey},
		"webhook, five keys": {
			signed, map[string]string{"secret": strings.Repeat(key1+" ", 5)},
			"the Secret teams/receiver has 5 keys in secret, and 4 are allowed; remove the old ones",
		},
		"mail, no username": {account, map[string]string{"password": "x"}, "the Secret teams/receiver has no key username; add it"},
		"mail, no password": {account, map[string]string{"username": "x"}, "the Secret teams/receiver has no key password; add it"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tt.sink(f)
			f.dial = nil // would panic
			f.secret(tt.data)
			f.expect("", delivery.Result{Outcome: delivery.Retry, Reason: v1alpha1.ReasonSecretInvalid, Message: tt.want})
		})
	}
}

func TestUnreadableSecrets(t *testing.T) {
	for name, sink := range map[string]func(f *fixture){"slack": chat, "teams": flow, "webhook": signed, "mail": account} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			sink(f)
			f.expect("", delivery.Result{
				Outcome: delivery.Retry, Reason: v1alpha1.ReasonSecretNotFound,
				Message: "there is no Secret teams/receiver, which secretRef names; create it",
			})
			f.cluster.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("etcd is unavailable")
			})
			f.expect("", delivery.Result{Outcome: delivery.Retry, Message: "read the Secret teams/receiver: etcd is unavailable"})
		})
	}
}
