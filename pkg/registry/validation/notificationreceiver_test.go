// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"net/mail"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func TestReceiver(t *testing.T) {
	secret := configbutler.SecretReference{Name: "receiver"}
	checkSinks(t, notificationSink, []change[notifier]{
		{name: "none", do: func(s notifier) { s.Spec.Slack = nil }, path: "spec", says: "one of slack, teams, email, webhook and event"},
		{
			name: "two", do: func(s notifier) { s.Spec.Teams = &configbutler.TeamsSink{SecretRef: secret} },
			path: "spec.teams", says: "must be absent if slack is set",
		},
		{
			name: "one and Events", do: func(s notifier) { s.Spec.Event = &configbutler.EventSink{} },
			path: "spec.event", says: "must be absent if slack is set",
		},
		{name: "Teams", do: func(s notifier) { s.Spec.Slack, s.Spec.Teams = nil, &configbutler.TeamsSink{SecretRef: secret} }},
		{name: "Events", do: func(s notifier) { s.Spec.Slack, s.Spec.Event = nil, &configbutler.EventSink{} }},
		{
			name: "Teams without a Secret", do: func(s notifier) { s.Spec.Slack, s.Spec.Teams = nil, &configbutler.TeamsSink{} },
			path: "spec.teams.secretRef.name", says: "Required",
		},
		{
			name: "Teams with a proxy without a name", do: func(s notifier) {
				s.Spec.Slack, s.Spec.Teams = nil, &configbutler.TeamsSink{SecretRef: secret, ProxySecretRef: &configbutler.SecretReference{}}
			},
			path: "spec.teams.proxySecretRef.name", says: "Required",
		},
		{
			name: "an authority of Teams", do: func(s notifier) {
				s.Spec.Slack, s.Spec.Teams = nil, &configbutler.TeamsSink{SecretRef: secret, CABundle: []byte("hush")}
			},
			path: "spec.teams.caBundle", says: "certificates in PEM",
		},
	})
}

func TestSlackSinks(t *testing.T) {
	channel := func(name string) func(notifier) { return func(s notifier) { s.Spec.Slack.Channel = name } }
	api := func(url string) func(notifier) { return func(s notifier) { s.Spec.Slack.APIURL = url } }
	const channelPath, apiPath = "spec.slack.channel", "spec.slack.apiURL"
	certificate, _ := selfSigned(t)
	checkSinks(t, notificationSink, []change[notifier]{
		{name: "no channel", do: channel("")},
		{name: "the ID of a channel", do: channel("C024BE91L")},
		{name: "a name as Slack shows it", do: channel("#équipe_a-1")},
		{name: "two words", do: channel("team a"), path: channelPath, says: "such as C024BE91L"},
		{name: "a mention", do: channel("<!here>"), path: channelPath, says: "such as C024BE91L"},
		{name: "a name without end", do: channel(strings.Repeat("a", 81)), path: channelPath, says: "at most 80 characters"},
		{name: "no Secret", do: func(s notifier) { s.Spec.Slack.SecretRef.Name = "" }, path: "spec.slack.secretRef.name", says: "Required"},
		{
			name: "a Secret that is none", do: func(s notifier) { s.Spec.Slack.SecretRef.Name = "a/b" },
			path: "spec.slack.secretRef.name", says: "RFC 1123",
		},
		{name: "a proxy", do: func(s notifier) { s.Spec.Slack.ProxySecretRef = &configbutler.SecretReference{Name: "proxy"} }},
		{
			name: "a proxy without a name", do: func(s notifier) { s.Spec.Slack.ProxySecretRef = &configbutler.SecretReference{} },
			path: "spec.slack.proxySecretRef.name", says: "Required",
		},
		{name: "another API", do: api("https://slack.example.com:8443/api/")},
		{name: "an API of another scheme", do: api("ftp://slack.example.com"), path: apiPath, says: "http://host/path or https://host/path"},
		{name: "an API with a query", do: api("https://slack.example.com/api?a=b"), path: apiPath, says: "query or a fragment"},
		{name: "an API with credentials", do: api("https://a:hush@slack.example.com"), path: apiPath, says: "must not contain credentials"},
		{name: "an authority", do: func(s notifier) { s.Spec.Slack.CABundle = certificate }},
		{
			name: "an authority without TLS", do: func(s notifier) {
				s.Spec.Slack.CABundle, s.Spec.Slack.APIURL = certificate, "http://slack.example.com"
			},
			path: "spec.slack.caBundle", says: "unless apiURL is an https URL",
		},
		{
			name: "no authority", do: func(s notifier) { s.Spec.Slack.CABundle = []byte("hush") },
			path: "spec.slack.caBundle", says: "certificates in PEM",
		},
	})
}

func TestEmailSinks(t *testing.T) {
	host := func(host string) func(notifier) { return func(s notifier) { s.Spec.Email.Host = host } }
	from := func(from string) func(notifier) { return func(s notifier) { s.Spec.Email.From = from } }
	recipients := func(n int) func(notifier) {
		return func(s notifier) {
			s.Spec.Email.To = nil
			for i := range n {
				s.Spec.Email.To = append(s.Spec.Email.To, fmt.Sprintf("a%d@example.com", i))
			}
		}
	}
	plain := func(do func(*configbutler.EmailSink)) func(notifier) {
		return func(s notifier) {
			s.Spec.Email.TLS, s.Spec.Email.SecretRef = configbutler.EmailPlain, nil
			do(s.Spec.Email)
		}
	}
	certificate, _ := selfSigned(t)
	const hostPath, fromPath = "spec.email.host", "spec.email.from"
	checkSinks(t, mailSink, []change[notifier]{
		{name: "no authentication", do: func(s notifier) { s.Spec.Email.SecretRef = nil }},
		{name: "an address of version 4", do: host("192.0.2.7")},
		{name: "an address of version 6", do: host("2001:db8::1")},
		{name: "capitals", do: host("SMTP.example.com")},
		{name: "no host", do: host(""), path: hostPath, says: "such as smtp.example.com"},
		{name: "a port in the host", do: host("smtp.example.com:25"), path: hostPath, says: "without a port"},
		{name: "a URL", do: host("smtp://a"), path: hostPath, says: "without a port"},
		{name: "two hosts", do: host("a b"), path: hostPath, says: "without a port"},
		{name: "port 0", do: func(s notifier) { s.Spec.Email.Port = ptr.To(int32(0)) }, path: "spec.email.port", says: "at least 1 and at most 65535"},
		{
			name: "a port that is none", do: func(s notifier) { s.Spec.Email.Port = ptr.To(int32(65536)) },
			path: "spec.email.port", says: "at least 1 and at most 65535",
		},
		{
			name: "an unknown use of TLS", do: func(s notifier) { s.Spec.Email.TLS = "Maybe" },
			path: "spec.email.tls", says: `"StartTLS", "Implicit", "None"`,
		},
		{name: "plain text", do: plain(func(*configbutler.EmailSink) {})},
		{
			name: "credentials in plain text",
			do:   plain(func(e *configbutler.EmailSink) { e.SecretRef = &configbutler.SecretReference{Name: "smtp"} }),
			path: "spec.email.secretRef", says: "must be absent if tls is None",
		},
		{
			name: "an authority without TLS", do: plain(func(e *configbutler.EmailSink) { e.CABundle = certificate }),
			path: "spec.email.caBundle", says: "must be absent if tls is None",
		},
		{name: "an authority", do: func(s notifier) { s.Spec.Email.CABundle = certificate }},
		{
			name: "no authority", do: func(s notifier) { s.Spec.Email.CABundle = []byte("hush") },
			path: "spec.email.caBundle", says: "certificates in PEM",
		},
		{
			name: "a Secret without a name", do: func(s notifier) { s.Spec.Email.SecretRef.Name = "" },
			path: "spec.email.secretRef.name", says: "Required",
		},
		{name: "an address alone", do: from("slipstream@example.com")},
		{name: "a name of any script", do: from("Équipe Ω <slipstream@example.com>")},
		{name: "no sender", do: from(""), path: fromPath, says: "such as jane@example.com"},
		{name: "a name alone", do: from("Slipstream"), path: fromPath, says: "such as jane@example.com"},
		{name: "two senders", do: from("a@example.com, b@example.com"), path: fromPath, says: "such as jane@example.com"},
		{name: "another header", do: from("a@example.com\r\nBcc: b@example.com"), path: fromPath, says: "control characters"},
		{name: "an address with a space", do: from(`"a b"@example.com`), path: fromPath, says: "without spaces"},
		{name: "an address of another script", do: from("ünal@example.com"), path: fromPath, says: "ASCII"},
		{name: "a sender without end", do: from(strings.Repeat("a", 512) + "@example.com"), path: fromPath, says: "512"},
		{name: "as many recipients as there may be", do: recipients(50)},
		{name: "more recipients", do: recipients(51), path: "spec.email.to", says: "at most 50"},
		{name: "no recipients", do: recipients(0), path: "spec.email.to", says: "at least one recipient"},
		{
			name: "a recipient twice", do: func(s notifier) { s.Spec.Email.To = []string{"a@example.com", "a@example.com"} },
			path: "spec.email.to[1]", says: "Duplicate",
		},
		{
			name: "a recipient without a host", do: func(s notifier) { s.Spec.Email.To = []string{"jane"} },
			path: "spec.email.to[0]", says: "such as jane@example.com",
		},
	})
}

func TestWebhookSinks(t *testing.T) {
	url := func(url string) func(notifier) { return func(s notifier) { s.Spec.Webhook.URL = url } }
	const path = "spec.webhook.url"
	certificate, _ := selfSigned(t)
	checkSinks(t, webhookSink, []change[notifier]{
		{name: "plain HTTP", do: url("http://[2001:db8::1]:8080")},
		{name: "neither URL nor Secret", do: url(""), path: path, says: "unless secretRef names a Secret with the key url"},
		{name: "the URL of the Secret", do: func(s notifier) {
			s.Spec.Webhook.URL, s.Spec.Webhook.SecretRef = "", &configbutler.SecretReference{Name: "hook"}
		}},
		{
			name: "a Secret without a name", do: func(s notifier) { s.Spec.Webhook.SecretRef = &configbutler.SecretReference{} },
			path: "spec.webhook.secretRef.name", says: "Required",
		},
		{
			name: "a proxy without a name", do: func(s notifier) { s.Spec.Webhook.ProxySecretRef = &configbutler.SecretReference{} },
			path: "spec.webhook.proxySecretRef.name", says: "Required",
		},
		{name: "another scheme", do: url("unix:///run/a"), path: path, says: "http://host/path or https://host/path"},
		{name: "no host", do: url("https://:443/a"), path: path, says: "must name a host"},
		{name: "a port that is none", do: url("https://a:0"), path: path, says: "from 1 to 65535"},
		{name: "a fragment", do: url("https://a/b#c"), path: path, says: "fragment"},
		{name: "spaces", do: url("https://a/b c"), path: path, says: "spaces"},
		{name: "a URL without end", do: url("https://a/" + strings.Repeat("b", 2048)), path: path, says: "2048"},
		{name: "an authority", do: func(s notifier) { s.Spec.Webhook.CABundle = certificate }},
		{
			name: "an authority without TLS", do: func(s notifier) {
				s.Spec.Webhook.URL, s.Spec.Webhook.CABundle = "HTTP://a", certificate
			},
			path: "spec.webhook.caBundle", says: "unless url is an https URL",
		},
	})
}

// Credentials in the URL of a webhook are refused, and errors do not show them, nor tokens in the query.
func TestCredentialsInTheURLOfAWebhook(t *testing.T) {
	for _, url := range []string{"https://jane:hush@a.example.com", "//jane:hush@a", "ftp://a?token=hush", "https://a/#hush"} {
		sink := webhookSink()
		sink.Spec.Webhook.URL = url
		errs := validation.ValidateNotificationSink(sink, validation.Options{})
		change[notifier]{path: "spec.webhook.url", says: "must"}.check(t, errs)
		if strings.Contains(errs.ToAggregate().Error(), "hush") {
			t.Errorf("%v shows what was given as %s", errs, url)
		}
	}
}

// FuzzAddresses checks that what is accepted is one address, without anything that could begin another header.
func FuzzAddresses(f *testing.F) {
	for _, seed := range []string{"a@b", "A <a@b>", "=?utf-8?q?=0D=0ABcc:_x?= <a@b>", `"a\"b"@c`, "a@[192.0.2.1]", "g: a@b;", "a@b (c)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sink := mailSink()
		sink.Spec.Email.From = text
		if len(validation.ValidateNotificationSink(sink, validation.Options{})) > 0 {
			return
		}
		address, err := mail.ParseAddress(text)
		if err != nil || strings.ContainsAny(text+address.Address, "\r\n\x00") || strings.Count(address.Address, " ") > 0 {
			t.Errorf("accepted %q: %v, %v", text, address, err)
		}
	})
}

// FuzzLinkTemplates checks that the host of an accepted link does not depend on the subject.
func FuzzLinkTemplates(f *testing.F) {
	for _, seed := range []string{"https://a/{name}", "https://a?{kind}", "http://{name}", "https:{name}", "https://a\\{name}", "https://a@{name}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		sink := notificationSink()
		sink.Spec.LinkTemplate = template
		if template == "" || len(validation.ValidateNotificationSink(sink, validation.Options{})) > 0 {
			return
		}
		_, rest, _ := strings.Cut(template, "://")
		host, _, _ := strings.Cut(rest, "/")
		host, _, _ = strings.Cut(host, "?")
		host, _, _ = strings.Cut(host, "#")
		if host == "" || strings.ContainsAny(host, "{}@\\") {
			t.Errorf("accepted %q", template)
		}
	})
}
