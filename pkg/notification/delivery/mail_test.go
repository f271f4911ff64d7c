// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/test/devcluster/mailcatcher"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
)

const password = "p ä+s3cret/word"

// mailServer returns a fixture with a mail server that requires an account, and STARTTLS or implicit TLS.
func mailServer(t *testing.T, options mailcatcher.Options) (*fixture, *notifytest.MailServer) {
	t.Helper()
	options.Username, options.Password = "slipstream", password
	f, server := newFixture(t), notifytest.Mail(t, options, true)
	f.sink.Spec.Email = &v1alpha1.EmailSink{
		Host: server.Host, Port: &server.Port, TLS: v1alpha1.EmailStartTLS, SecretRef: &secretRef, CABundle: server.CABundle,
		From: "Slipstream <slipstream@example.com>", To: []string{"Jane Roe <jane@example.com>", "ops@example.com"},
	}
	if options.ImplicitTLS {
		f.sink.Spec.Email.TLS = v1alpha1.EmailImplicitTLS
	}
	f.secret(map[string]string{"username": "slipstream", "password": password + "\n"})
	return f, server
}

// plainServer returns a fixture with a mail server without TLS and accounts.
func plainServer(t *testing.T) (*fixture, *notifytest.MailServer) {
	t.Helper()
	f, server := newFixture(t), notifytest.Mail(t, mailcatcher.Options{}, false)
	f.sink.Spec.Email = &v1alpha1.EmailSink{
		Host: server.Host, Port: &server.Port, TLS: v1alpha1.EmailPlain, From: "slipstream@example.com", To: []string{"jane@example.com"},
	}
	return f, server
}

// only returns the only mail.
func only(t *testing.T, server *notifytest.MailServer) (mailcatcher.Mail, mailcatcher.Parsed) {
	t.Helper()
	mails := server.Mails()
	if len(mails) != 1 {
		t.Fatalf("%d mails, want 1", len(mails))
	}
	parsed, err := mails[0].Parse()
	if err != nil {
		t.Fatal(err)
	}
	return mails[0], parsed
}

func TestMail(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (*fixture, *notifytest.MailServer){
		"STARTTLS": func(t *testing.T) (*fixture, *notifytest.MailServer) { return mailServer(t, mailcatcher.Options{}) },
		"implicit TLS": func(t *testing.T) (*fixture, *notifytest.MailServer) {
			return mailServer(t, mailcatcher.Options{ImplicitTLS: true})
		},
		"LOGIN": func(t *testing.T) (*fixture, *notifytest.MailServer) {
			return mailServer(t, mailcatcher.Options{Mechanism: "LOGIN"})
		},
		"no TLS": plainServer,
	} {
		t.Run(name, func(t *testing.T) {
			f, server := start(t)
			m := about(v1alpha1.NotifyConflicted)
			subject, text, html := format.Mail(m)
			address := net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port)))
			accepted := delivery.Result{Outcome: delivery.Delivered, Message: address + " has accepted the mail"}
			if got := f.deliver(m, ""); got != accepted {
				t.Fatalf("got %+v, want %+v", got, accepted)
			}
			mail, parsed := only(t, server)
			encrypted := f.sink.Spec.Email.TLS != v1alpha1.EmailPlain
			if mail.Encrypted != encrypted || encrypted != (mail.Username == "slipstream") {
				t.Errorf("encrypted = %v, username = %q", mail.Encrypted, mail.Username)
			}
			want := mailcatcher.Parsed{Header: parsed.Header, Subject: subject, Text: strings.TrimSpace(text), HTML: strings.TrimSpace(html)}
			parsed.Text, parsed.HTML = strings.TrimSpace(parsed.Text), strings.TrimSpace(parsed.HTML)
			if diff := cmp.Diff(want, parsed); diff != "" {
				t.Errorf("wrong content (-want +got):\n%s", diff)
			}
			if mail.From != "slipstream@example.com" || len(mail.To) != len(f.sink.Spec.Email.To) || mail.To[0] != "jane@example.com" {
				t.Errorf("envelope from %s to %v", mail.From, mail.To)
			}
		})
	}
}

func TestMailHeader(t *testing.T) {
	f, server := mailServer(t, mailcatcher.Options{})
	if got := f.deliver(about(v1alpha1.NotifyFailed), ""); got.Outcome != delivery.Delivered || got.Thread != "" {
		t.Fatalf("got %+v", got)
	}
	_, parsed := only(t, server)
	header := map[string]string{}
	for name, values := range parsed.Header {
		header[name] = strings.Join(values, "|")
	}
	for _, name := range []string{"Subject", "Content-Type"} { // TestMail has them.
		delete(header, name)
	}
	want := map[string]string{
		"From": `"Slipstream" <slipstream@example.com>`, "To": `"Jane Roe" <jane@example.com>, <ops@example.com>`,
		"Date": "Sun, 22 Nov 2026 12:00:00 +0000", "Message-Id": "<slipstream.55cffaaf45da5217ca0cc07c0d696991@example.com>",
		"Mime-Version": "1.0", "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All",
		"List-Id": "<chat.teams.notificationsinks.configbutler.ai>",
	}
	if diff := cmp.Diff(want, header); diff != "" {
		t.Errorf("wrong header (-want +got):\n%s", diff)
	}
}

// Mails about one subject refer to the first, and a mail that is sent again has the same ID.
func TestMailThread(t *testing.T) {
	f, server := mailServer(t, mailcatcher.Options{})
	first := f.deliver(threaded("1"), "")
	for range 2 {
		if second := f.deliver(threaded("2"), first.Thread); second.Outcome != delivery.Delivered || second.Thread != first.Thread {
			t.Fatalf("first = %+v, second = %+v", first, second)
		}
	}
	var ids []string
	for i, mail := range server.Mails() {
		parsed, err := mail.Parse()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, parsed.Header.Get("Message-Id"))
		if before := parsed.Header.Get("In-Reply-To"); i > 0 && (before != ids[0] || parsed.Header.Get("References") != ids[0]) {
			t.Errorf("mail %d replies to %q, want %q", i, before, ids[0])
		}
	}
	if len(ids) != 3 || ids[0] != "<"+first.Thread+">" || ids[1] == ids[0] || ids[2] != ids[1] {
		t.Errorf("ids = %q, thread = %q", ids, first.Thread)
	}
}

// SMTPUTF8 is requested only for addresses that need it.
func TestMailToUnicodeAddress(t *testing.T) {
	f, server := mailServer(t, mailcatcher.Options{})
	f.sink.Spec.Email.From = "Müller <slipstream@example.com>"
	for _, to := range []string{"jane@example.com", "jürgen@example.com"} {
		f.sink.Spec.Email.To = []string{to}
		if got := f.deliver(about(v1alpha1.NotifyFailed), ""); got.Outcome != delivery.Delivered {
			t.Fatalf("got %+v", got)
		}
		mails := server.Mails()
		if mail := mails[len(mails)-1]; mail.To[0] != to || mail.UTF8 != (to != "jane@example.com") {
			t.Errorf("to %s: to = %v, SMTPUTF8 = %v", to, mail.To, mail.UTF8)
		}
	}
}

// Content cannot add to the header, nor end the mail early.
func TestHostileMail(t *testing.T) {
	f, server := mailServer(t, mailcatcher.Options{})
	m := about(v1alpha1.NotifyFailed)
	m.Title = "a\r\nBcc: eve@example.com\r\n\r\nb"
	m.Text = "one\r\n.\r\nRCPT TO:<eve@example.com>\r\n.two\n" + strings.Repeat("ü", 3000)
	if got := f.deliver(m, ""); got.Outcome != delivery.Delivered {
		t.Fatalf("got %+v", got)
	}
	mail, parsed := only(t, server)
	if len(mail.To) != 2 || parsed.Header.Get("Bcc") != "" || !strings.Contains(parsed.Text, "RCPT TO:<eve@example.com>") {
		t.Errorf("mail to %v: %s", mail.To, mail.Content)
	}
}

// Failures are explained, and retried unless they are about the mail itself.
func TestMailFailures(t *testing.T) {
	fail := func(step mailcatcher.Step, code int, text string) func(*fixture, *notifytest.MailServer) {
		return func(_ *fixture, server *notifytest.MailServer) { server.Fail(step, code, text) }
	}
	for name, tt := range map[string]struct {
		options mailcatcher.Options
		arrange func(f *fixture, server *notifytest.MailServer)
		outcome delivery.Outcome
		want    string
	}{
		"wrong password": {
			arrange: func(f *fixture, _ *notifytest.MailServer) {
				f.secret(map[string]string{"username": "slipstream", "password": "wr0ng"})
			},
			outcome: delivery.Retry,
			want:    "HOST refuses the credentials in the Secret teams/receiver: 535 5.7.8 Authentication of slipstream with [REDACTED] failed",
		},
		"wrong password, LOGIN": {
			options: mailcatcher.Options{Mechanism: "LOGIN"},
			arrange: func(f *fixture, _ *notifytest.MailServer) {
				f.secret(map[string]string{"username": "slipstream", "password": "wr0ng"})
			},
			outcome: delivery.Retry,
			want:    "HOST refuses the credentials in the Secret teams/receiver: 535 5.7.8 Authentication of slipstream with [REDACTED] failed",
		},
		"quoted credentials": {
			arrange: fail(mailcatcher.Auth, 535, "no: AHNsaXBzdHJlYW0AcCDDpCtzM2NyZXQvd29yZA=="),
			outcome: delivery.Retry, want: "HOST refuses the credentials in the Secret teams/receiver: 535 no: [REDACTED]",
		},
		"unknown mechanism": {
			options: mailcatcher.Options{Mechanism: "XOAUTH2"}, outcome: delivery.Retry,
			want: "HOST offers no authentication that is supported (PLAIN, LOGIN, SCRAM-SHA-256, CRAM-MD5); " +
				"email.secretRef asks for it, with the Secret teams/receiver",
		},
		"unknown authority": {
			arrange: func(f *fixture, _ *notifytest.MailServer) { f.sink.Spec.Email.CABundle = nil }, outcome: delivery.Retry,
			want: "the certificate of HOST is signed by an authority that is not known: put that authority into caBundle",
		},
		"unknown authority, implicit TLS": {
			options: mailcatcher.Options{ImplicitTLS: true},
			arrange: func(f *fixture, _ *notifytest.MailServer) { f.sink.Spec.Email.CABundle = nil }, outcome: delivery.Retry,
			want: "the certificate of HOST is signed by an authority that is not known: put that authority into caBundle",
		},
		"no TLS on the port": {
			arrange: func(f *fixture, _ *notifytest.MailServer) { f.sink.Spec.Email.TLS = v1alpha1.EmailImplicitTLS }, outcome: delivery.Retry,
			want: "HOST answers without TLS: set email.tls to StartTLS, or the port is another one",
		},
		"account required": {
			arrange: func(f *fixture, _ *notifytest.MailServer) { f.sink.Spec.Email.SecretRef = nil }, outcome: delivery.Retry,
			want: "HOST refuses the sender <slipstream@example.com>: 502 5.7.0 Please authenticate first",
		},
		"greylisting": {
			arrange: fail(mailcatcher.To, 451, "4.7.1 Greylisted, please try again"), outcome: delivery.Retry,
			want: "HOST refuses the recipient <jane@example.com>: 451 4.7.1 Greylisted, please try again",
		},
		"unknown sender": {
			arrange: fail(mailcatcher.From, 550, "5.7.1 not yours"), outcome: delivery.Retry,
			want: "HOST refuses the sender <slipstream@example.com>: 550 5.7.1 not yours",
		},
		"relay refused": {
			arrange: fail(mailcatcher.To, 554, "5.7.1 relay access denied"), outcome: delivery.Retry,
			want: "HOST refuses the recipient <jane@example.com>: 554 5.7.1 relay access denied",
		},
		"unknown recipient": {
			arrange: fail(mailcatcher.To, 550, "5.1.1 no such user"), outcome: delivery.Retry,
			want: "HOST refuses the recipient <jane@example.com>: 550 5.1.1 no such user",
		},
		"too large": {
			options: mailcatcher.Options{MaxBytes: 1 << 10}, outcome: delivery.Rejected,
			want: "HOST refuses the mail: 552 5.3.4 Maximum message size exceeded",
		},
		"a filter": {
			arrange: fail(mailcatcher.Content, 554, "5.7.1 looks like spam"), outcome: delivery.Rejected,
			want: "HOST refuses the mail: 554 5.7.1 looks like spam",
		},
		"a full mailbox": {
			arrange: fail(mailcatcher.Content, 552, "5.2.2 mailbox full"), outcome: delivery.Retry,
			want: "HOST refuses the mail: 552 5.2.2 mailbox full",
		},
		"busy": {
			arrange: fail(mailcatcher.Content, 452, "4.3.1 disk full"), outcome: delivery.Retry,
			want: "HOST refuses the mail: 452 4.3.1 disk full",
		},
		"other refusal": {
			arrange: fail(mailcatcher.Content, 550, "5.7.26 not authenticated by SPF"), outcome: delivery.Retry,
			want: "HOST refuses the mail: 550 5.7.26 not authenticated by SPF",
		},
		"connection lost in DATA": {
			arrange: fail(mailcatcher.Content, mailcatcher.Hangup, ""), outcome: delivery.Retry,
			want: "HOST has closed the connection",
		},
		"refused address": {
			arrange: func(f *fixture, _ *notifytest.MailServer) { f.dial = (&egress.Policy{}).DialContext }, outcome: delivery.Retry,
			want: "connections to 127.0.0.1 (loopback) are refused; --allow-destinations can allow them",
		},
		"no server": {
			arrange: func(f *fixture, _ *notifytest.MailServer) {
				f.dial = func(context.Context, string, string) (net.Conn, error) {
					return nil, &net.DNSError{Err: "no such host", Name: "mail.example.com", IsNotFound: true}
				}
			}, outcome: delivery.Retry,
			want: "the name mail.example.com cannot be resolved (no such host): is email.host right?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, server := mailServer(t, tt.options)
			if tt.arrange != nil {
				tt.arrange(f, server)
			}
			f.expect(net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port))), delivery.Result{Outcome: tt.outcome, Message: tt.want})
			if got := len(server.Mails()); got != 0 {
				t.Errorf("%d mails", got)
			}
			if name != "greylisting" && name != "unknown recipient" {
				return
			}
			if got := f.deliver(about(v1alpha1.NotifyPrompted), ""); got.Outcome != delivery.Delivered {
				t.Errorf("second attempt: %+v", got)
			}
		})
	}
}

// Without STARTTLS, neither credentials nor the mail are sent.
func TestMissingStartTLS(t *testing.T) {
	f, server := plainServer(t)
	f.sink.Spec.Email.TLS, f.sink.Spec.Email.SecretRef = v1alpha1.EmailStartTLS, &secretRef
	f.secret(map[string]string{"username": "slipstream", "password": password})
	f.expect(net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port))), delivery.Result{
		Outcome: delivery.Retry,
		Message: "HOST offers no STARTTLS, and nothing was sent; set email.tls to Implicit if the port has TLS from the beginning",
	})
	if got := len(server.Mails()); got != 0 {
		t.Errorf("%d mails", got)
	}
}

// withoutQuit is a connection over which the server does not receive QUIT.
type withoutQuit struct{ net.Conn }

func (c withoutQuit) Write(text []byte) (int, error) {
	if bytes.HasPrefix(text, []byte("QUIT")) {
		return len(text), nil
	}
	return c.Conn.Write(text)
}

// TestNoResponseToQuit checks that an accepted mail counts as delivered if the server does not respond afterwards.
func TestNoResponseToQuit(t *testing.T) {
	f, server := plainServer(t)
	dial := f.dial
	f.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		return withoutQuit{connection}, err
	}
	if got := f.deliver(about(v1alpha1.NotifyPrompted), ""); got.Outcome != delivery.Delivered {
		t.Errorf("%+v", got)
	}
	if got := len(server.Mails()); got != 1 {
		t.Errorf("%d mails", got)
	}
}

// rawServer starts a server that writes to each connection until it is closed, and returns its address.
func rawServer(t *testing.T, text string, endless bool) (host string, port int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			for err == nil {
				_, err = connection.Write([]byte(text))
				if !endless {
					_, err = connection.Read(make([]byte, 1))
				}
			}
			_ = connection.Close()
		}
	}()
	address := listener.Addr().(*net.TCPAddr)
	return address.IP.String(), int32(address.Port)
}

// What is read from a server is bounded, and so is its time.
func TestHostileServer(t *testing.T) {
	f, _ := plainServer(t)
	host, port := rawServer(t, "220-"+strings.Repeat("x", 1000)+"\r\n", true)
	f.sink.Spec.Email.Host, f.sink.Spec.Email.Port = host, &port
	got := f.deliver(about(v1alpha1.NotifyFailed), "")
	if got.Outcome != delivery.Retry || !strings.HasSuffix(got.Message, "it sends more than 262144 bytes") {
		t.Errorf("endless greeting: %+v", got)
	}
	for _, tls := range []v1alpha1.EmailTLS{v1alpha1.EmailPlain, v1alpha1.EmailImplicitTLS} {
		host, port = rawServer(t, "", false)
		f.sink.Spec.Email.Host, f.sink.Spec.Email.Port, f.sink.Spec.Email.TLS = host, &port, tls
		ctx, cancel := context.WithCancelCause(t.Context())
		f.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
			cancel(errors.New("the server stops"))
			return connection, err
		}
		got := f.deliverTo(ctx, f.receiver(), about(v1alpha1.NotifyFailed), "")
		if got.Outcome != delivery.Retry || !strings.Contains(got.Message, "context canceled") {
			t.Errorf("silent server, %s: %+v", tls, got)
		}
	}
}
