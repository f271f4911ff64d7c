// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mailcatcher

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// session is the conversation with one client.
type session struct {
	catcher    *Catcher
	connection *smtp.Conn
	mail       Mail
}

var _ smtp.AuthSession = &session{}

func (c *Catcher) newSession(connection *smtp.Conn) (smtp.Session, error) {
	return &session{catcher: c, connection: connection}, nil
}

// AuthMechanisms returns the offered mechanism, none if clients need no account.
func (s *session) AuthMechanisms() []string {
	switch {
	case s.catcher.options.Username == "":
		return nil
	case s.catcher.options.Mechanism != "":
		return []string{s.catcher.options.Mechanism}
	}
	return []string{sasl.Plain}
}

// Auth starts the authentication of a client.
func (s *session) Auth(mechanism string) (sasl.Server, error) {
	if mechanism == sasl.Login {
		return &login{check: s.authenticate}, nil
	}
	return sasl.NewPlainServer(func(_, username, password string) error { return s.authenticate(username, password) }), nil
}

func (s *session) authenticate(username, password string) error {
	if err := s.fail(Auth); err != nil {
		return err
	}
	wanted := s.catcher.options.Username + "\x00" + s.catcher.options.Password
	if subtle.ConstantTimeCompare([]byte(username+"\x00"+password), []byte(wanted)) == 0 {
		return &smtp.SMTPError{
			Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8},
			// Servers have been seen to repeat what they got.
			Message: fmt.Sprintf("Authentication of %s with %s failed", username, password),
		}
	}
	s.mail.Username = username
	return nil
}

// login is the mechanism LOGIN: the server asks for one and then the other.
type login struct {
	check     func(username, password string) error
	questions int
	username  string
}

// Next returns the next question, or checks the answers.
func (l *login) Next(response []byte) (challenge []byte, done bool, err error) {
	l.questions++
	switch l.questions {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.username = string(response)
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.username, string(response))
}

// fail makes a step fail, if a test has asked for it.
func (s *session) fail(step Step) error {
	failure := s.catcher.failure(step)
	switch {
	case failure == nil:
		return nil
	case failure.Code == Hangup:
		_ = s.connection.Conn().Close()
		return errors.New("the connection is closed")
	}
	return failure
}

// Mail begins a mail.
func (s *session) Mail(from string, options *smtp.MailOptions) error {
	if s.catcher.options.Username != "" && s.mail.Username == "" {
		return smtp.ErrAuthRequired
	}
	s.mail = Mail{Username: s.mail.Username, From: from, UTF8: options.UTF8}
	_, s.mail.Encrypted = s.connection.TLSConnectionState()
	return s.fail(From)
}

// Rcpt adds a recipient.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.To = append(s.mail.To, to)
	return s.fail(To)
}

// Data reads the content.
func (s *session) Data(content io.Reader) error {
	if failure := s.fail(Content); failure != nil {
		return failure
	}
	var err error
	if s.mail.Content, err = io.ReadAll(content); err != nil {
		return err
	}
	return s.catcher.accept(s.mail)
}

// Reset ends a mail.
func (s *session) Reset() { s.mail = Mail{Username: s.mail.Username} }

// Logout does nothing.
func (*session) Logout() error { return nil }
