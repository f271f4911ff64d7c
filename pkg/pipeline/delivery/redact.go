// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	redacted = "[REDACTED]"
	// maxShown bounds the bytes of a response that are shown.
	maxShown = 200
	// maxSearched bounds the bytes of a response that are searched for credentials: more than are shown, and few enough for a hostile one.
	maxSearched = 1 << 10
)

// redact returns the printable line that is shown of a text from a receiver. The credentials are replaced before the text is cut, so that
// no part of them is left at its end.
func (c credentials) redact(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(c.mask(text), "?"))
	return summary.Cut(summary.Line(text), maxShown)
}

// mask replaces the credentials in the first bytes of a text, and drops the rest.
func (c credentials) mask(text string) string {
	var masked strings.Builder
	for at := 0; at < min(len(text), maxSearched); {
		if length := c.prefixLength(text[at:]); length > 0 {
			masked.WriteString(redacted)
			at += length
			continue
		}
		masked.WriteByte(text[at])
		at++
	}
	return masked.String()
}

// prefixLength returns the length of the credentials with which a text begins, 0 if it does not.
func (c credentials) prefixLength(text string) int {
	for _, encoded := range c.encodings {
		if length := encoded.prefixLength(text); length > 0 {
			return length
		}
	}
	return 0
}

// encodedSecret is a form in which servers quote credentials: plain, or in base64. Either may be escaped for a URL or for JSON, in whole or
// in part.
type encodedSecret struct {
	text string
	// padded reports whether base64 padding may follow.
	padded bool
}

func encodingsOf(c credentials) []encodedSecret {
	var all []encodedSecret
	for _, secret := range []string{c.token, c.password} {
		if secret == "" {
			continue
		}
		all = append(all, encodedSecret{text: secret})
		for _, plain := range []string{c.username + ":" + secret, secret} {
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				all = append(all, encodedSecret{encoding.EncodeToString([]byte(plain)), true})
			}
		}
	}
	return all
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
