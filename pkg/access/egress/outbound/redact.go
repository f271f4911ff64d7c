// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
)

const (
	// Redacted replaces secrets.
	Redacted = "[REDACTED]"
	// maxSearched bounds the bytes of a text that are searched for secrets: more than are shown, and few enough for a hostile one.
	maxSearched = 1 << 10
)

// Redactor replaces secrets in the texts of servers. The zero value replaces none.
type Redactor struct {
	// encodings are the forms in which a text may quote them.
	encodings []encodedSecret
}

// NewRedactor returns a Redactor of secrets, empty ones aside. composed are texts that contain secrets and are sent in base64 only.
func NewRedactor(secrets []string, composed ...string) Redactor {
	var r Redactor
	for _, secret := range secrets {
		if secret != "" {
			r.encodings = append(r.encodings, encodedSecret{text: secret})
		}
	}
	for _, text := range slices.Concat(composed, secrets) {
		if text == "" {
			continue
		}
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			r.encodings = append(r.encodings, encodedSecret{encoding.EncodeToString([]byte(text)), true})
		}
	}
	return r
}

// Joined returns a Redactor that also replaces the secrets of another one.
func (r Redactor) Joined(other Redactor) Redactor {
	return Redactor{slices.Concat(r.encodings, other.encodings)}
}

// OfProxy returns a Redactor of the credentials of a proxy, which can be nil.
func OfProxy(p *proxy.Proxy) Redactor {
	username, password := p.Credentials()
	if password == "" {
		return Redactor{}
	}
	return NewRedactor([]string{password}, username+":"+password)
}

// Redact returns the first bytes of a text without secrets and without characters that cannot be printed. It is redacted before the caller
// truncates it to what is shown, so that no part of a secret is left at its end.
func (r Redactor) Redact(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(r.mask(text), "?"))
}

// mask replaces the secrets in the first bytes of a text, and drops the rest.
func (r Redactor) mask(text string) string {
	var masked strings.Builder
	for at := 0; at < min(len(text), maxSearched); {
		if length := r.prefixLength(text[at:]); length > 0 {
			masked.WriteString(Redacted)
			at += length
			continue
		}
		masked.WriteByte(text[at])
		at++
	}
	return masked.String()
}

// prefixLength returns the length of the secret with which a text begins, 0 if there is none.
func (r Redactor) prefixLength(text string) int {
	for _, encoded := range r.encodings {
		if length := encoded.prefixLength(text); length > 0 {
			return length
		}
	}
	return 0
}

// encodedSecret is a form in which servers quote a secret: plain, or in base64. Either may be escaped for a URL or for JSON, in whole or
// in part.
type encodedSecret struct {
	text string
	// padded reports whether base64 padding may follow.
	padded bool
}

// prefixLength returns the length of the secret with which a text begins, its escapes and padding included; 0 if it does not.
func (e encodedSecret) prefixLength(text string) int {
	length := len(e.text)
	if !strings.HasPrefix(text, e.text) {
		length = escaped(text, e.text)
	}
	for e.padded && length > 0 {
		padding := escapedRune(text[length:], "=", '=')
		if padding == 0 {
			break
		}
		length += padding
	}
	return length
}

// escaped returns the length of the prefix of a text that is the escaped secret, 0 if there is none.
func escaped(text, secret string) int {
	at := 0
	for secret != "" {
		r, size := utf8.DecodeRuneInString(secret)
		length := escapedRune(text[at:], secret[:size], r)
		if length == 0 {
			return 0
		}
		at, secret = at+length, secret[size:]
	}
	return at
}

// escapedRune returns the length of the prefix of a text that is the character r, escaped or not; 0 if there is none. raw is r in UTF-8.
func escapedRune(text, raw string, r rune) int {
	length := max(percentEscaped(text, raw), unicodeEscaped(text, r))
	switch {
	case length > 0:
		return length
	case strings.HasPrefix(text, `\`) && strings.HasPrefix(text[1:], raw):
		return 1 + len(raw)
	case strings.HasPrefix(text, raw):
		return len(raw)
	case r == ' ' && strings.HasPrefix(text, "+"):
		return 1
	}
	return 0
}

// percentEscaped is escapedRune for URLs.
func percentEscaped(text, raw string) int {
	const size = len("%20")
	for i := range len(raw) {
		if !isEscape(text[min(i*size, len(text)):], "%", size, uint64(raw[i])) {
			return 0
		}
	}
	return len(raw) * size
}

// unicodeEscaped is escapedRune for JSON.
func unicodeEscaped(text string, r rune) int {
	const size = len(`\u0020`)
	var units [2]uint16
	length := 0
	for _, unit := range utf16.AppendRune(units[:0], r) {
		if !isEscape(text[min(length, len(text)):], `\u`, size, uint64(unit)) {
			return 0
		}
		length += size
	}
	return length
}

// isEscape reports whether a text begins with an escape of a number: a sign and hexadecimal digits, size bytes in all.
func isEscape(text, sign string, size int, number uint64) bool {
	if len(text) < size || !strings.HasPrefix(text, sign) {
		return false
	}
	read, err := strconv.ParseUint(text[len(sign):size], 16, 16)
	return err == nil && read == number
}
