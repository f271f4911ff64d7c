// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"strings"
)

const (
	redacted = "[REDACTED]"
	// defaultUser is who SSH servers expect, and a name that HTTP servers accept beside a token.
	defaultUser = "git"
)

// Credentials are what a Remote shows to the other side and what it knows the other side by. The zero value is an
// anonymous caller. No formatting verb prints their values.
type Credentials struct {
	// Username and Password are for HTTP and for SSH servers that take passwords; a Password without a Username goes
	// with the name "git", or with the one in the URL.
	Username string
	Password string
	// BearerToken is sent to HTTP servers as it is and takes the place of Username and Password.
	BearerToken string
	// SSHPrivateKey is a private key in PEM or OpenSSH form; SSHPassphrase opens it if it is locked.
	SSHPrivateKey []byte
	SSHPassphrase []byte
	// KnownHosts is in the form of OpenSSH's file and is required for SSH.
	KnownHosts []byte
	// CABundle holds certificates in PEM form that HTTPS servers are trusted by, beside those of the system.
	CABundle []byte
	// ClientCert and ClientKey are shown to HTTPS servers; both in PEM form.
	ClientCert []byte
	ClientKey  []byte
}

var (
	_ fmt.Formatter  = Credentials{}
	_ fmt.Stringer   = Credentials{}
	_ fmt.GoStringer = Credentials{}
)

// String names nothing but the fact that these are credentials.
func (Credentials) String() string { return redacted }

// GoString is String.
func (Credentials) GoString() string { return redacted }

// Format writes String for every verb.
func (Credentials) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// MarshalJSON writes String, so that a structured log does not reveal them either.
func (Credentials) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// withURL completes the credentials by those that stand in the URL.
func (c Credentials) withURL(user, password string) Credentials {
	if c.Username == "" {
		c.Username = user
	}
	if c.Password == "" && c.BearerToken == "" {
		c.Password = password
	}
	if c.Username == "" {
		c.Username = defaultUser
	}
	return c
}

// scrub takes the secrets out of a text from elsewhere, in every form in which they are sent.
func (c Credentials) scrub(text string) string {
	basic := base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
	for _, secret := range []string{c.Password, c.BearerToken, string(c.SSHPassphrase)} {
		if secret == "" {
			continue
		}
		for _, form := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), basic,
		} {
			text = strings.ReplaceAll(text, form, redacted)
		}
	}
	return text
}
