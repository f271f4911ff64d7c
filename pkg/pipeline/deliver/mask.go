// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/configbutler/slipstream/pkg/sentence"
)

const (
	redacted = "[REDACTED]"
	// maxShown is how many bytes of what a receiver says are shown.
	maxShown = 200
)

// show is what people see of a text that a receiver had a part in: one printable line without the credentials. They are taken out
// before it is cut, so that no part of them is left at its end.
func (c credentials) show(text string) string {
	if c.quoted != nil {
		text = c.quoted.ReplaceAllLiteralString(text, redacted)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
	return sentence.Cut(sentence.Line(text), maxShown)
}

// quotations finds credentials in the forms in which servers quote what they were sent: as they are, in base 64, and either of
// these escaped for a URL or for JSON, wholly or in part.
func quotations(c credentials) *regexp.Regexp {
	var forms []string
	for _, secret := range []string{c.token, c.password} {
		if secret == "" {
			continue
		}
		forms = append(forms, escapable(secret))
		for _, plain := range []string{c.username + ":" + secret, secret} {
			for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				forms = append(forms, escapable(encoding.EncodeToString([]byte(plain)))+"(?:=|%3[dD])*")
			}
		}
	}
	return regexp.MustCompile(strings.Join(forms, "|"))
}

// escapable matches a text of which any character may be escaped.
func escapable(text string) string {
	var pattern strings.Builder
	for _, r := range text {
		var percent strings.Builder
		for _, b := range []byte(string(r)) {
			fmt.Fprintf(&percent, "%%%02x", b)
		}
		fmt.Fprintf(&pattern, `(?:\\?%s|(?i:%s)|\\u(?i:%04x)`, regexp.QuoteMeta(string(r)), percent.String(), r)
		if r == ' ' {
			pattern.WriteString(`|\+`)
		}
		pattern.WriteString(")")
	}
	return pattern.String()
}
