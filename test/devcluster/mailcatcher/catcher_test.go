// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mailcatcher_test

import (
	"errors"
	"io"
	"net"
	"net/smtp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/devcluster/mailcatcher"
)

// content is a mail with encoded words and bodies.
const content = `From: Slipstream <slipstream@example.com>
To: jane@example.com
Subject: =?utf-8?q?gr=C3=BCn?=
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

l=C3=A4uft
.
--b
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

<p>l=C3=A4uft</p>
--b--
`

// A mail is printed as a recipient sees it. What is not such a mail is printed as it is.
func TestPrint(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	catcher := mailcatcher.New(&out, mailcatcher.Options{})
	served := make(chan error)
	go func() { served <- catcher.Serve(listener) }()
	for _, mail := range []string{content, "Subject: plain\n\ntext\n"} {
		mail = strings.ReplaceAll(mail, "\n", "\r\n")
		if err := smtp.SendMail(listener.Addr().String(), nil, "slipstream@example.com", []string{"jane@example.com", "ops@example.com"}, []byte(mail)); err != nil {
			t.Fatal(err)
		}
	}
	if err := catcher.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	want := `From:    Slipstream <slipstream@example.com>
To:      jane@example.com, ops@example.com
Subject: grün

läuft
.

mail that cannot be shown: read the content type: mime: no media type
Subject: plain

text

`
	if diff := cmp.Diff(want, strings.ReplaceAll(out.String(), "\r\n", "\n")); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// A mail that cannot be kept is rejected.
func TestAccept(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	catcher := mailcatcher.New(io.Discard, mailcatcher.Options{Accept: func(mailcatcher.Mail) error { return errors.New("no space") }})
	served := make(chan error)
	go func() { served <- catcher.Serve(listener) }()
	err = smtp.SendMail(listener.Addr().String(), nil, "slipstream@example.com", []string{"jane@example.com"}, []byte("Subject: a\r\n\r\nb\r\n"))
	if err == nil || len(catcher.Mails()) > 0 {
		t.Errorf("the mail is accepted: %v", err)
	}
	if err := errors.Join(catcher.Close(), <-served); err != nil {
		t.Error(err)
	}
}
