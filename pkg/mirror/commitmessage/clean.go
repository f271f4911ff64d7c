// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitmessage

import (
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// oneLine takes the brackets that hold an address out of a fact, and shows what else would let it pass for more than one
// line, or for another fact.
func oneLine(text string) string {
	return strings.TrimSpace(printable.Line(strings.TrimSpace(strings.NewReplacer("<", "", ">", "").Replace(text))))
}

// scissors is a line after which git looks for no trailers; openScissors is none.
const (
	scissors     = "# ------------------------ >8 ------------------------"
	openScissors = "# ------------------------ 8< ------------------------"
)

// paragraphs shows what is not seen in a message, and takes out what would end it early for git.
func paragraphs(text string) string {
	text = printable.Text(strings.ReplaceAll(text, "\r\n", "\n"))
	return strings.TrimSpace(strings.ReplaceAll(text, scissors, openScissors))
}

// shortened is the beginning of a text, as many whole characters as go into limit bytes.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
