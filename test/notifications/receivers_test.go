// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/mailcatcher"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
)

const (
	// webhookSecret signs messages.
	webhookSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	botToken      = "xoxb-token-of-a-bot"
	mailPassword  = "mail-server-password"
)

// testReceivers has each kind of receiver get two prompts about an environment, which are one thread, and a change.
func (s *testCluster) testReceivers(t *testing.T) {
	c := s.newFixture(t, "receivers")
	m := s.NewMirror(t, c.team)
	m.Watch(t, "all", "configmaps")
	c.environment(t, "alice", c.target)
	c.sync(t, "alice")
	m.Settled(t)

	all := map[string]*notifytest.Receiver{
		"slack": notifytest.Slack(t), "bot": notifytest.SlackAPI(t, botToken), "teams": notifytest.Teams(t),
		"webhook": notifytest.Webhook(t, webhookSecret),
	}
	mail := notifytest.Mail(t, mailcatcher.Options{Username: "slipstream", Password: mailPassword}, true)
	s.secret(t, c.team, "slack", "url: "+all["slack"].URL)
	s.secret(t, c.team, "bot", "token: "+botToken)
	s.secret(t, c.team, "teams", "url: '"+all["teams"].URL+"'")
	s.secret(t, c.team, "webhook", "secret: "+webhookSecret)
	s.secret(t, c.team, "mail", "username: slipstream", "password: "+mailPassword)
	bundle := func(pem []byte) string { return "caBundle: " + base64.StdEncoding.EncodeToString(pem) }
	for name, field := range map[string]string{
		"slack":   "slack: {secretRef: {name: slack}, " + bundle(all["slack"].CABundle()) + "}",
		"bot":     "slack: {secretRef: {name: bot}, channel: C024BE91L, apiURL: '" + all["bot"].URL + "', " + bundle(all["bot"].CABundle()) + "}",
		"teams":   "teams: {secretRef: {name: teams}, " + bundle(all["teams"].CABundle()) + "}",
		"webhook": "webhook: {secretRef: {name: webhook}, url: '" + all["webhook"].URL + "', " + bundle(all["webhook"].CABundle()) + "}",
		"mail": fmt.Sprintf("email: {host: %s, port: %d, secretRef: {name: mail}, from: slipstream@example.com, to: [team@example.com], %s}",
			mail.Host, mail.Port, bundle(mail.CABundle)),
		"record": "event: {}",
	} {
		s.sink(t, c.team, name, field, prompt, "events: [Prompted, Change]", "resources: [configmaps]")
	}

	received := func(number int, text string) {
		t.Helper()
		for name, r := range all {
			mirrortest.Eventually(t, fmt.Sprintf("message %d of %s has %q", number, name, text), func(context.Context) error {
				requests := r.Requests()
				if len(requests) < number || !strings.Contains(string(requests[number-1].Body), text) {
					return fmt.Errorf("%d messages", len(requests))
				}
				return nil
			})
		}
		mirrortest.Eventually(t, fmt.Sprintf("mail %d has %q", number, text), func(context.Context) error {
			mails := mail.Mails()
			if len(mails) < number || !strings.Contains(mails[number-1].String(), text) {
				return fmt.Errorf("%d mails: %v", len(mails), mails)
			}
			return nil
		})
	}
	c.image(t, "shop/web:2")
	received(1, "alice")
	s.waitForEvent(t, c.team, "Prompted", "Environment", "alice")
	c.sync(t, "alice")
	c.image(t, "shop/web:3")
	received(2, "alice")
	s.ConfigMap(t, c.team, "settings", "level: debug")
	received(3, "settings")
	s.waitForEvent(t, c.team, "Change", "ConfigMap", "settings")

	expectThread(t, all["bot"])
	expectMails(t, mail)
}

// waitForEvent waits for an Event about an object.
func (s *testCluster) waitForEvent(t *testing.T, namespace, reason, kind, name string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("Event %s about %s %s", reason, kind, name), func(ctx context.Context) error {
		found, err := s.jane.Try.Events(ctx, namespace, "reason="+reason+",involvedObject.kind="+kind+",involvedObject.name="+name)
		if err == nil && found == "" {
			err = fmt.Errorf("no Event")
		}
		return err
	})
}

// expectThread checks that the second message of a bot is in the thread of the first, and the third, about another subject, in none.
func expectThread(t *testing.T, bot *notifytest.Receiver) {
	t.Helper()
	for i, want := range []string{"", "1503435956.000001", ""} {
		var message struct {
			Thread string `json:"thread_ts"`
		}
		if err := json.Unmarshal(bot.Requests()[i].Body, &message); err != nil || message.Thread != want {
			t.Errorf("thread of message %d = %q, want %q (%v)", i+1, message.Thread, want, err)
		}
	}
}

// expectMails checks that all mails were sent with TLS and authentication, and that the second is in the thread of the first.
func expectMails(t *testing.T, server *notifytest.MailServer) {
	t.Helper()
	var first string
	for i, mail := range server.Mails() {
		parsed, err := mail.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if !mail.Encrypted || mail.Username != "slipstream" {
			t.Errorf("mail %d: encrypted %t, user %q", i+1, mail.Encrypted, mail.Username)
		}
		references := parsed.Header.Get("References")
		switch i {
		case 0:
			first = parsed.Header.Get("Message-ID")
		case 1:
			if first == "" || references != first {
				t.Errorf("References of the second mail = %q, want %q", references, first)
			}
		default:
			if strings.Contains(references, first) {
				t.Errorf("References of mail %d = %q", i+1, references)
			}
		}
	}
}
