// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitformat

import (
	"strings"
	"unicode"
)

// oneLine takes out of a fact what would let it pass for more than one, or show as another: control characters, line
// separators, marks that turn the direction of text around, and the brackets that hold an address.
func oneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '<' || r == '>' || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
}

// scissors is a line after which git looks for no trailers; openScissors is none.
const (
	scissors     = "# ------------------------ >8 ------------------------"
	openScissors = "# ------------------------ 8< ------------------------"
)

// paragraphs takes out of a message what is no text, and what would end it early for git.
func paragraphs(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.TrimSpace(strings.ReplaceAll(text, scissors, openScissors))
}

// shortened is the beginning of a text, as many whole characters as go into limit bytes.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
