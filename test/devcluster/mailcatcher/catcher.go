// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mailcatcher is an SMTP server that keeps and prints mail instead of delivering it.
package mailcatcher

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"sync"

	"github.com/emersion/go-smtp"
)

// Step is a step of a delivery that a test can make fail.
type Step string

// Steps.
const (
	Auth Step = "AUTH"
	From Step = "MAIL"
	To   Step = "RCPT"
	// Content is the end of DATA.
	Content Step = "DATA"
)

// Hangup is the code of a failure that closes the connection instead of responding.
const Hangup = 0

// Options are those of a server. The zero value accepts mail from any client, without TLS.
type Options struct {
	// TLS has the certificate. Without it, the server does not offer STARTTLS.
	TLS *tls.Config
	// ImplicitTLS begins each connection with TLS.
	ImplicitTLS bool
	// Username and Password are required of clients, unless they are empty.
	Username, Password string
	// Mechanism is the mechanism that is offered: PLAIN or LOGIN. It is PLAIN if it is empty.
	Mechanism string
	// MaxBytes is the maximum size of a mail. 0 means no limit.
	MaxBytes int64
	// Accept is called with each mail, one at a time, before it is accepted. An error rejects the mail. Optional.
	Accept func(Mail) error
}

// Catcher is a server. It must be made by New.
type Catcher struct {
	options Options
	out     io.Writer
	server  *smtp.Server

	mutex    sync.Mutex
	mails    []Mail
	failures map[Step][]smtp.SMTPError
}

// New returns a server that prints to out.
func New(out io.Writer, options Options) *Catcher {
	c := &Catcher{options: options, out: out, failures: map[Step][]smtp.SMTPError{}}
	c.server = smtp.NewServer(smtp.BackendFunc(c.newSession))
	c.server.Domain = "mailcatcher.example.com"
	c.server.MaxMessageBytes = options.MaxBytes
	c.server.EnableSMTPUTF8 = true
	c.server.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust the certificate
	if !options.ImplicitTLS {
		c.server.TLSConfig = options.TLS
	}
	return c
}

// Serve serves connections until Close.
func (c *Catcher) Serve(listener net.Listener) error {
	if c.options.ImplicitTLS {
		listener = tls.NewListener(listener, c.options.TLS)
	}
	if err := c.server.Serve(listener); !errors.Is(err, smtp.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Close ends all connections.
func (c *Catcher) Close() error { return c.server.Close() }

// Fail makes the next attempt of a step fail with the code and text of a reply.
func (c *Catcher) Fail(step Step, code int, text string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.failures[step] = append(c.failures[step], smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: text})
}

// Mails returns the accepted mails in order.
func (c *Catcher) Mails() []Mail {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.mails)
}

// failure returns the next failure of a step, nil if there is none.
func (c *Catcher) failure(step Step) *smtp.SMTPError {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	failures := c.failures[step]
	if len(failures) == 0 {
		return nil
	}
	c.failures[step] = failures[1:]
	return &failures[0]
}

// accept keeps a mail and prints it.
func (c *Catcher) accept(mail Mail) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.options.Accept != nil {
		if err := c.options.Accept(mail); err != nil {
			return fmt.Errorf("keep the mail: %w", err)
		}
	}
	c.mails = append(c.mails, mail)
	if _, err := fmt.Fprintln(c.out, mail); err != nil {
		return fmt.Errorf("print the mail: %w", err)
	}
	return nil
}
