// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	netmail "net/mail"
	"strings"

	gomail "github.com/wneessen/go-mail"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// mail sends mail. Each delivery has a connection of its own.
type mail struct {
	secrets secretReader
	clock   clock.PassiveClock
	spec    *v1alpha1.EmailSink
	server  smtpServer
	from    *netmail.Address
	to      []*netmail.Address
	// listID identifies the sink, so that recipients can sort its mail.
	listID string
}

var _ Receiver = &mail{}

func newMail(config Config, secrets secretReader, name string, spec *v1alpha1.EmailSink) (*mail, error) {
	m := &mail{
		secrets: secrets, clock: config.Clock, spec: spec,
		listID: fmt.Sprintf("<%s.%s.%s>", name, secrets.namespace, "notificationsinks."+v1alpha1.SchemeGroupVersion.Group),
	}
	var err error
	if m.server, err = newSMTPServer(config.Network.Direct, spec); err != nil {
		return nil, err
	}
	if m.from, err = netmail.ParseAddress(spec.From); err != nil {
		return nil, fmt.Errorf("read from: %w", err)
	}
	for _, to := range spec.To {
		address, err := netmail.ParseAddress(to)
		if err != nil {
			return nil, fmt.Errorf("read to: %w", err)
		}
		m.to = append(m.to, address)
	}
	return m, nil
}

// Close does nothing.
func (*mail) Close() {}

// Deliver sends a message as one mail to all recipients.
func (d *mail) Deliver(ctx context.Context, m *message.Message, thread string) Result {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	account, err := d.account(ctx)
	if err != nil {
		return failed(err)
	}
	id := d.messageID(m.ID)
	if result := d.server.send(ctx, account, d.envelope(m, id, thread)); result.Outcome != Delivered {
		return result
	}
	result := Result{Outcome: Delivered, Message: d.server.name + " has accepted the mail"}
	switch {
	case m.Thread == "":
	case thread != "":
		result.Thread = thread
	default:
		result.Thread = id
	}
	return result
}

// account is what a user authenticates with.
type account struct {
	username, password string
	// secret is the name of the Secret.
	secret string
}

// redactor returns a Redactor of the password in the forms in which it is sent.
func (a account) redactor() outbound.Redactor {
	return outbound.NewRedactor([]string{a.password}, "\x00"+a.username+"\x00"+a.password)
}

// account returns the account, the zero value without authentication. Nothing is authenticated without TLS.
func (d *mail) account(ctx context.Context) (account, error) {
	if d.spec.SecretRef == nil || d.spec.TLS == v1alpha1.EmailPlain {
		return account{}, nil
	}
	secret, err := d.secrets.read(ctx, d.spec.SecretRef.Name)
	if err != nil {
		return account{}, err
	}
	a := account{secret.Value(keyUsername), secret.Value(keyPassword), secret.Name}
	switch {
	case a.username == "":
		return account{}, missing(secret, keyUsername)
	case a.password == "":
		return account{}, missing(secret, keyPassword)
	}
	return a, secret.CheckLength(a.username, a.password)
}

// messageID returns the Message-ID without its brackets. It is the same when a message is sent again, so that mail servers can recognize a
// repeated one.
func (d *mail) messageID(id string) string {
	const length = 16
	sum := sha256.Sum256([]byte(id))
	_, domain, _ := strings.Cut(d.from.Address, "@")
	return "slipstream." + hex.EncodeToString(sum[:length]) + "@" + domain
}

// envelope is a mail with its addresses.
type envelope struct {
	from string
	to   []string
	mail *gomail.Msg
}

// envelope returns a message as mail.
func (d *mail) envelope(m *message.Message, id, thread string) envelope {
	subject, text, html := format.Mail(m)
	made := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	made.FromMailAddress(d.from)
	made.ToMailAddress(d.to...)
	made.Subject(subject)
	made.SetDateWithValue(d.clock.Now())
	made.SetMessageIDWithValue(id)
	if thread != "" {
		made.SetGenHeader(gomail.HeaderInReplyTo, "<"+thread+">")
		made.SetGenHeader(gomail.HeaderReferences, "<"+thread+">")
	}
	// Programs that respond to mail, such as out-of-office notes, must not respond to these (RFC 3834).
	made.SetGenHeader("Auto-Submitted", "auto-generated")
	made.SetGenHeader(gomail.HeaderXAutoResponseSuppress, "All")
	made.SetGenHeader("List-Id", d.listID)
	made.SetBodyString(gomail.TypeTextPlain, text)
	made.AddAlternativeString(gomail.TypeTextHTML, html)
	to := make([]string, len(d.to))
	for i, address := range d.to {
		to[i] = bracketed(address)
	}
	return envelope{bracketed(d.from), to, made}
}

// bracketed returns an address for a command of SMTP. Address.String quotes what must be quoted.
func bracketed(address *netmail.Address) string {
	return (&netmail.Address{Address: address.Address}).String()
}
