// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package inbox_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/smtp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/configbutler/slipstream/test/devcluster/inbox"
)

// serve serves an inbox in a folder until stop is called, and returns the variables.
func serve(t *testing.T, folder string) (env map[string]string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	served, err := inbox.New(ctx, folder)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- served.Serve(ctx) }()
	env = map[string]string{}
	for line := range strings.Lines(read(t, folder, "env")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return env, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// send sends a mail with STARTTLS and the credentials.
func send(t *testing.T, env map[string]string, password, content string) error {
	t.Helper()
	bundle, err := base64.StdEncoding.DecodeString(env["MAIL_CA_BUNDLE"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	client, err := smtp.Dial(net.JoinHostPort(env["MAIL_HOST"], env["MAIL_PORT"]))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := client.StartTLS(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: env["MAIL_HOST"]}); err != nil {
		t.Fatal(err)
	}
	if err := client.Auth(smtp.PlainAuth("", env["MAIL_USERNAME"], password, env["MAIL_HOST"])); err != nil {
		return err
	}
	if err := client.Mail("slipstream@example.com"); err != nil {
		t.Fatal(err)
	}
	if err := client.Rcpt("team@example.com"); err != nil {
		t.Fatal(err)
	}
	writer, err := client.Data()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(writer, content); err != nil {
		t.Fatal(err)
	}
	return writer.Close()
}

// Mails are kept as they are, and as a recipient reads them, beside those of an earlier start.
func TestMails(t *testing.T) {
	folder := t.TempDir()
	const content = "Subject: web\r\n\r\nchanged\r\n"
	for _, number := range []string{"1", "2"} {
		env, stop := serve(t, folder)
		if err := send(t, env, "wrong", content); err == nil {
			t.Error("a wrong password is accepted")
		}
		if err := send(t, env, env["MAIL_PASSWORD"], content); err != nil {
			t.Fatal(err)
		}
		stop()
		if got := read(t, folder, "mails", number+".eml"); got != content {
			t.Errorf("mail %s is %q", number, got)
		}
		if got := read(t, folder, "mails", number+".txt"); !strings.Contains(got, "Subject: web") {
			t.Errorf("text %s is %q", number, got)
		}
	}
}

// post sends a message, signed with a secret, and returns the status of the response.
func post(t *testing.T, env map[string]string, secret, body string) int {
	t.Helper()
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signature, err := signer.Sign("1", now, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, env["WEBHOOK_URL"], strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Webhook-Id": "1", "Webhook-Timestamp": strconv.FormatInt(now.Unix(), 10), "Webhook-Signature": signature,
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// Signed messages are printed, and others are rejected.
func TestWebhook(t *testing.T) {
	folder := t.TempDir()
	env, stop := serve(t, folder)
	defer stop()
	const one = `{"event":"Prompted","headline":"Environment teams/staging: 1 workload changed","changedBy":[{"name":"jane"},{"name":"bob"}]}`
	for _, each := range []struct {
		secret, body string
		status       int
	}{
		{env["WEBHOOK_SECRET"], one, http.StatusOK},
		{env["WEBHOOK_SECRET"], `{"notifications":[{"event":"Failed","headline":"a","error":"b","actor":"dana"},{"event":"Completed","headline":"c"}]}`, http.StatusOK},
		{"whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 24))), one, http.StatusUnauthorized},
		{env["WEBHOOK_SECRET"], `{`, http.StatusBadRequest},
		{env["WEBHOOK_SECRET"], `{}`, http.StatusBadRequest},
	} {
		if status := post(t, env, each.secret, each.body); status != each.status {
			t.Errorf("%s: status %d, want %d", each.body, status, each.status)
		}
	}
	want := `Prompted     Environment teams/staging: 1 workload changed  changed by jane, bob
Failed       a  requested by dana  b
Completed    c
`
	if diff := cmp.Diff(want, read(t, folder, "webhook.log")); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}
