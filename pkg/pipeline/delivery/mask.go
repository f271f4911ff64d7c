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
	// maxShown is how many bytes of what a receiver says are shown.
	maxShown = 200
	// maxSearched is how many bytes of it are looked at: more than are shown, and no more than a hostile one may cost.
	maxSearched = 1 << 10
)

// show is what people see of a text that a receiver had a part in: one printable line without the credentials. They are taken out
// before it is cut, so that no part of them is left at its end.
func (c credentials) show(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(c.mask(text), "?"))
	return summary.Cut(summary.Line(text), maxShown)
}

// mask takes the credentials out of the beginning of a text.
func (c credentials) mask(text string) string {
	var masked strings.Builder
	for at := 0; at < min(len(text), maxSearched); {
		if length := c.quotedBy(text[at:]); length > 0 {
			masked.WriteString(redacted)
			at += length
			continue
		}
		masked.WriteByte(text[at])
		at++
	}
	return masked.String()
}

// quotedBy is how much of a text quotes the credentials that it begins with, 0 if it begins with none.
func (c credentials) quotedBy(text string) int {
	for _, of := range c.quotations {
		if length := of.length(text); length > 0 {
			return length
		}
	}
	return 0
}

// quotation is a form in which servers quote credentials: as they are, or in base 64. Either may be escaped for a URL or for JSON,
// wholly or in part.
type quotation struct {
	text string
	// padded says that there may be padding after it.
	padded bool
}

func quotationsOf(c credentials) []quotation {
	var all []quotation
	for _, secret := range []string{c.token, c.password} {
		if secret == "" {
			continue
		}
		all = append(all, quotation{text: secret})
		for _, plain := range []string{c.username + ":" + secret, secret} {
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				all = append(all, quotation{encoding.EncodeToString([]byte(plain)), true})
			}
		}
	}
	return all
}

// length is that of the quotation with which a text begins, 0 if there is none.
func (q quotation) length(text string) int {
	length := len(q.text)
	if !strings.HasPrefix(text, q.text) {
		length = escaped(text, q.text)
	}
	for q.padded && length > 0 {
		padding := escapedRune(text[length:], "=", '=')
		if padding == 0 {
			break
		}
		length += padding
	}
	return length
}

// escaped is how much of a text stands for a secret, 0 if it does not begin with that.
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

// escapedRune is how much of a text stands for a character, which is written as raw; 0 if it does not begin with that.
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

// percentEscaped is like escapedRune, for characters in URLs.
func percentEscaped(text, raw string) int {
	const size = len("%20")
	for i := range len(raw) {
		if !isEscape(text[min(i*size, len(text)):], "%", size, uint64(raw[i])) {
			return 0
		}
	}
	return len(raw) * size
}

// unicodeEscaped is like escapedRune, for characters in JSON.
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

// isEscape says whether a text begins with a number in so many bytes, the sign before it included.
func isEscape(text, sign string, size int, number uint64) bool {
	if len(text) < size || !strings.HasPrefix(text, sign) {
		return false
	}
	read, err := strconv.ParseUint(text[len(sign):size], 16, 16)
	return err == nil && read == number
}
