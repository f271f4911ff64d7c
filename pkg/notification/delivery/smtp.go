// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/wneessen/go-mail/smtp"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// portSubmission is the port for STARTTLS, and without TLS.
	portSubmission = 587
	// portImplicitTLS is the port for TLS from the beginning.
	portImplicitTLS = 465
	// maxConversation bounds the bytes that are read from a server in one delivery: the certificates, and short replies.
	maxConversation = 256 << 10
	// quitLimit is how long a server that has accepted a mail may take to end the conversation.
	quitLimit = 2 * time.Second
)

// smtpServer sends mail to one SMTP server. It drives the SMTP client of go-mail command by command: go-mail's own Client does not report
// at which command a server refused, keeps the connection of a failed login open, and does not end with its context.
type smtpServer struct {
	dial outbound.Dial
	// name is the host with its port.
	name, host string
	mode       v1alpha1.EmailTLS
	tls        *tls.Config
}

func newSMTPServer(dial outbound.Dial, spec *v1alpha1.EmailSink) (smtpServer, error) {
	configuration, err := outbound.TLSConfig(spec.CABundle)
	if err != nil {
		return smtpServer{}, err
	}
	configuration.ServerName = spec.Host
	port := int32(portSubmission)
	switch {
	case spec.Port != nil:
		port = *spec.Port
	case spec.TLS == v1alpha1.EmailImplicitTLS:
		port = portImplicitTLS
	}
	name := net.JoinHostPort(spec.Host, strconv.Itoa(int(port)))
	return smtpServer{dial, name, spec.Host, spec.TLS, configuration}, nil
}

// send delivers a mail.
func (s smtpServer) send(ctx context.Context, account account, mail envelope) Result {
	err := s.converse(ctx, account, mail)
	if err == nil {
		return Result{Outcome: Delivered}
	}
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err) // The connection was closed, which says less.
	}
	return Result{Outcome: smtpOutcome(err), Message: show(account.redactor(), s.explain(err, account))}
}

// converse makes a connection, sends a mail over it, and closes it. It returns nil if the server has accepted the mail.
func (s smtpServer) converse(ctx context.Context, account account, mail envelope) error {
	connection, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	client, err := smtp.NewClient(connection, s.host)
	if err != nil {
		return &stepError{step: "does not greet", err: err}
	}
	if err := s.begin(client, account); err != nil {
		return err
	}
	if err := transmit(client, mail); err != nil {
		return err
	}
	// The mail is accepted, whether the server responds or not.
	_ = connection.SetDeadline(time.Now().Add(quitLimit))
	_ = client.Quit()
	return nil
}

// connect makes a connection, with TLS if it is implicit.
func (s smtpServer) connect(ctx context.Context) (net.Conn, error) {
	connection, err := s.dial(ctx, "tcp", s.name)
	if err != nil {
		return nil, err
	}
	connection = &boundedConn{connection, maxConversation}
	if s.mode != v1alpha1.EmailImplicitTLS {
		return connection, nil
	}
	encrypted := tls.Client(connection, s.tls)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = connection.Close()
		return nil, err
	}
	return encrypted, nil
}

var (
	errNoStartTLS = errors.New("offers no STARTTLS, and nothing was sent; set email.tls to Implicit if the port has TLS from the beginning")
	errNoAuth     = errors.New("offers no authentication that is supported (PLAIN, LOGIN, SCRAM-SHA-256, CRAM-MD5)")
)

// begin greets the server, encrypts the connection and authenticates.
func (s smtpServer) begin(client *smtp.Client, account account) error {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	if err := client.Hello(hostname); err != nil {
		return &stepError{step: "refuses this client", err: err}
	}
	if s.mode == v1alpha1.EmailStartTLS {
		if ok, _ := client.Extension("STARTTLS"); !ok {
			return &stepError{err: errNoStartTLS}
		}
		if err := client.StartTLS(s.tls); err != nil {
			return &stepError{step: "fails to start TLS", err: err}
		}
	}
	if account.username == "" {
		return nil
	}
	_, mechanisms := client.Extension("AUTH")
	auth := s.mechanism(strings.Fields(mechanisms), account)
	if auth == nil {
		return &stepError{err: errNoAuth}
	}
	if err := client.Auth(auth); err != nil {
		return &stepError{step: "refuses the credentials in the Secret " + account.secret, err: err}
	}
	return nil
}

// mechanism returns how to authenticate, nil if the server offers no supported mechanism. The connection is encrypted and the server is
// verified, so the plain mechanisms come first: all servers support them for all users.
func (s smtpServer) mechanism(offered []string, a account) smtp.Auth {
	switch {
	case slices.Contains(offered, "PLAIN"):
		return smtp.PlainAuth("", a.username, a.password, s.host, false)
	case slices.Contains(offered, "LOGIN"):
		return smtp.LoginAuth(a.username, a.password, s.host, false)
	case slices.Contains(offered, "SCRAM-SHA-256"):
		return smtp.ScramSHA256Auth(a.username, a.password)
	case slices.Contains(offered, "CRAM-MD5"):
		return smtp.CRAMMD5Auth(a.username, a.password)
	}
	return nil
}

// transmit sends a mail. It goes to all recipients or to none, so that it can be sent again without repeating it to some.
func transmit(client *smtp.Client, mail envelope) error {
	// Servers cannot pass a mail with SMTPUTF8 on to those that do not support it. Only addresses need it: the rest is encoded.
	client.SkipSMTPUTF8(isASCII(mail.from) && !slices.ContainsFunc(mail.to, func(to string) bool { return !isASCII(to) }))
	if err := client.Mail(mail.from); err != nil {
		return &stepError{step: "refuses the sender " + mail.from, err: err}
	}
	for _, to := range mail.to {
		if err := client.Rcpt(to); err != nil {
			return &stepError{step: "refuses the recipient " + to, err: err}
		}
	}
	content, err := client.Data()
	if err != nil {
		return &stepError{step: "refuses mail", err: err}
	}
	if _, err := mail.mail.WriteTo(content); err != nil {
		return &stepError{step: "stopped reading the mail", err: err}
	}
	if err := content.Close(); err != nil {
		return &stepError{step: "refuses the mail", err: err, ofContent: true}
	}
	return nil
}

func isASCII(address string) bool {
	return !strings.ContainsFunc(address, func(r rune) bool { return r > unicode.MaxASCII })
}

// stepError is the failure of one step of a conversation.
type stepError struct {
	// step reads like: refuses the sender <a@example.com>.
	step string
	err  error
	// ofContent is set if the server has the whole mail.
	ofContent bool
}

func (e *stepError) Error() string {
	text := e.err.Error()
	var reply *textproto.Error
	if errors.As(e.err, &reply) {
		text = fmt.Sprintf("%d %s", reply.Code, reply.Msg)
	}
	return strings.TrimPrefix(e.step+": "+text, ": ")
}

func (e *stepError) Unwrap() error { return e.err }

// smtpOutcome returns the outcome of a failed delivery. Senders, recipients, credentials and addresses can be repaired; a mail whose
// content was refused because of its size (552) or by a filter (554) cannot. A full mailbox (5.2.2) has 552 as well, and can be emptied.
func smtpOutcome(err error) Outcome {
	var (
		step  *stepError
		reply *textproto.Error
	)
	if !errors.As(err, &step) || !step.ofContent || !errors.As(err, &reply) {
		return Retry
	}
	const tooLarge, refused = 552, 554
	if reply.Code == refused || reply.Code == tooLarge && !strings.HasPrefix(reply.Msg, "5.2.2 ") {
		return Rejected
	}
	return Retry
}

// explain describes a failure for users.
func (s smtpServer) explain(err error, account account) string {
	var (
		step   *stepError
		reply  *textproto.Error
		record tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &record):
		return s.name + " answers without TLS: set email.tls to StartTLS, or the port is another one"
	case errors.Is(err, errNoAuth):
		return fmt.Sprintf("%s %s; email.secretRef asks for it, with the Secret %s", s.name, errNoAuth, account.secret)
	case errors.As(err, &step) && (errors.As(err, &reply) || step.step == ""):
		return s.name + " " + step.Error()
	case isClosed(err):
		return s.name + " has closed the connection"
	}
	server := outbound.Server{Host: s.name, HostField: "email.host", PortField: "email.port", Timeout: timeLimit}
	return server.Explain(err)
}

// isClosed reports whether a server has closed the connection. The error depends on what was in transit.
func isClosed(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}, func(closed error) bool {
		return errors.Is(err, closed)
	})
}

// boundedConn bounds the bytes that are read from a connection.
type boundedConn struct {
	net.Conn
	left int
}

var errTooMuch = fmt.Errorf("it sends more than %d bytes", maxConversation)

func (c *boundedConn) Read(into []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	read, err := c.Conn.Read(into[:min(len(into), c.left)])
	c.left -= read
	return read, err
}
