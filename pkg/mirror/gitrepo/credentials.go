// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strings"
)

const (
	redacted = "[REDACTED]"
	// defaultUser is the user that SSH servers expect, and one that HTTP servers accept beside a token.
	defaultUser = "git"
)

// Credentials authenticate a Remote to the server, and the server to it. The zero value is anonymous access. No
// formatting verb prints their values.
type Credentials struct {
	// Username and Password are for HTTP, and for SSH servers that accept passwords. Without a Username, the one in the
	// URL is used, or "git".
	Username string
	Password string
	// BearerToken is sent to HTTP servers instead of Username and Password.
	BearerToken string
	// Tokens, if set, has the tokens that HTTP servers get instead of Password, with the Username; without one, as bearer tokens.
	Tokens TokenSource
	// SSHPrivateKey is a private key in PEM or OpenSSH form; SSHPassphrase decrypts it if it is encrypted. SSHCertificate, if
	// set, is the user certificate of the key, as ssh-keygen -s writes it.
	SSHPrivateKey  []byte
	SSHPassphrase  []byte
	SSHCertificate []byte
	// KnownHosts is the content of an OpenSSH known_hosts file. SSH requires it.
	KnownHosts []byte
	// CABundle holds CA certificates in PEM form that are trusted for HTTPS, beside those of the system.
	CABundle []byte
	// ClientCert and ClientKey are the client certificate for HTTPS, in PEM form.
	ClientCert []byte
	ClientKey  []byte
}

// TokenSource has tokens that are valid for a short time. It is comparable and safe for concurrent use.
type TokenSource interface {
	// Token returns a valid token. refused is one that the server has refused, or empty; if it is returned again, there is no
	// other. The kind of an *Error is kept.
	Token(ctx context.Context, refused string) (string, error)
}

// Equal reports whether the credentials are the same.
func (c Credentials) Equal(other Credentials) bool {
	if c.Tokens != other.Tokens {
		return false
	}
	c.Tokens, other.Tokens = nil, nil
	return reflect.DeepEqual(c, other)
}

var (
	_ fmt.Formatter  = Credentials{}
	_ fmt.Stringer   = Credentials{}
	_ fmt.GoStringer = Credentials{}
)

// String returns a placeholder.
func (Credentials) String() string { return redacted }

// GoString returns the same as String.
func (Credentials) GoString() string { return redacted }

// Format writes String for every verb.
func (Credentials) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// MarshalJSON returns String, so that structured logs do not reveal the credentials.
func (Credentials) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// withURL returns the credentials, completed with those in the URL.
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

// minScrubbed is the length in bytes of the shortest text that scrub removes. A shorter one occurs by chance in every message, and
// removing it there would reveal it: the reader knows which path or word the message is about, and sees which letters of it are missing. It
// also protects nothing, because a secret of three bytes is found by trying.
const minScrubbed = 4

// scrub removes the secrets from a text, in every encoding in which they are sent that has at least minScrubbed bytes.
func (c Credentials) scrub(text string) string {
	basic := base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
	for _, secret := range []string{c.Password, c.BearerToken, string(c.SSHPassphrase)} {
		if secret == "" {
			continue
		}
		for _, form := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), basic,
		} {
			if len(form) >= minScrubbed {
				text = strings.ReplaceAll(text, form, redacted)
			}
		}
	}
	return text
}
