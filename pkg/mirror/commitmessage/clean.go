// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitmessage

import (
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// oneLine returns the text without angle brackets and with characters escaped that could make it look like several lines
// or like another text.
func oneLine(text string) string {
	return strings.TrimSpace(printable.Line(strings.TrimSpace(withoutBrackets.Replace(text))))
}

// withoutBrackets removes what encloses an email address in a signature.
var withoutBrackets = strings.NewReplacer("<", "", ">", "")

// scissors is a line after which git ignores trailers; openScissors is not special.
const (
	scissors     = "# ------------------------ >8 ------------------------"
	openScissors = "# ------------------------ 8< ------------------------"
)

// paragraphs escapes invisible characters in a message, and removes the line that would end it for git.
func paragraphs(text string) string {
	text = printable.Text(strings.ReplaceAll(text, "\r\n", "\n"))
	return strings.TrimSpace(strings.ReplaceAll(text, scissors, openScissors))
}

// shortened returns the beginning of a text, as many whole characters as fit into limit bytes.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
