// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/notification/message"
)

// slackBlock is a block of a message.
type slackBlock struct {
	Type     string         `json:"type"`
	Text     *slackText     `json:"text,omitempty"`
	Elements []slackElement `json:"elements,omitempty"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Emoji stays false, so that :fire: is shown as it is.
	Emoji bool `json:"emoji"`
}

// slackElement is a part of a block: a section or preformatted text of rich text, or a text, link or date in one of these.
type slackElement struct {
	Type     string         `json:"type"`
	Style    *slackStyle    `json:"style,omitempty"`
	URL      string         `json:"url,omitempty"`
	Text     string         `json:"text,omitempty"`
	Elements []slackElement `json:"elements,omitempty"`
	// Timestamp, Format and Fallback are those of a date.
	Timestamp int64  `json:"timestamp,omitempty"`
	Format    string `json:"format,omitempty"`
	Fallback  string `json:"fallback,omitempty"`
}

type slackStyle struct {
	Bold   bool `json:"bold,omitempty"`
	Italic bool `json:"italic,omitempty"`
}

func slackPlain(text string) slackElement { return slackElement{Type: "text", Text: text} }

func (e slackElement) bold() slackElement {
	e.Style = &slackStyle{Bold: true}
	return e
}

func (e slackElement) italic() slackElement {
	e.Style = &slackStyle{Italic: true}
	return e
}

func slackSection(elements ...slackElement) slackElement {
	return slackElement{Type: "rich_text_section", Elements: elements}
}

// appendSection adds a section with one text, unless it is empty: Slack rejects empty texts.
func appendSection(parts []slackElement, text slackElement) []slackElement {
	if text.Text == "" {
		return parts
	}
	return append(parts, slackSection(text))
}

// slackDate returns a time that Slack shows in the time zone of the reader.
func slackDate(at time.Time) slackElement {
	if at.Unix() <= 0 {
		return slackPlain(message.Moment(at))
	}
	return slackElement{Type: "date", Timestamp: at.Unix(), Format: slackTimeFormat, Fallback: message.Moment(at)}
}

const slackTimeFormat = "{date_short_pretty} {time}"

// slackMarkupTime is slackDate in markup.
func slackMarkupTime(at time.Time) string {
	if at.Unix() <= 0 {
		return message.Moment(at)
	}
	return fmt.Sprintf("<!date^%d^%s|%s>", at.Unix(), slackTimeFormat, message.Moment(at))
}

// slackRichText distributes the parts of a text to blocks that Slack accepts.
func slackRichText(parts []slackElement) []slackBlock {
	var blocks []slackBlock
	used := 0
	for _, part := range parts {
		size := part.length()
		if len(blocks) == 0 || used+size > maxSlackBlock {
			blocks, used = append(blocks, slackBlock{Type: "rich_text"}), 0
		}
		last := &blocks[len(blocks)-1]
		last.Elements, used = append(last.Elements, part), used+size
	}
	return blocks
}

// length returns the number of bytes of all texts and links in an element.
func (e slackElement) length() int {
	length := len(e.Text) + len(e.URL) + len(e.Fallback)
	for _, inner := range e.Elements {
		length += inner.length()
	}
	return length
}

// slackLength returns the number of bytes of all texts and links in blocks.
func slackLength(blocks []slackBlock) int {
	length := 0
	for _, block := range blocks {
		if block.Text != nil {
			length += len(block.Text.Text)
		}
		length += slackElement{Elements: block.Elements}.length()
	}
	return length
}

// mentions are words that notify everyone in a channel. Slack does not read them here, but other servers might.
var mentions = regexp.MustCompile(`(?i)@(here|channel|all|everyone|group)\b`)

// slackFallback escapes a text, and truncates it to the limit of a section.
func slackFallback(text string) string {
	const dots = "..."
	text = mentions.ReplaceAllString(strings.TrimSpace(text), "@\u200b$1")
	var out strings.Builder
	for _, char := range text {
		escaped := string(char)
		switch char {
		case '&':
			escaped = "&amp;"
		case '<':
			escaped = "&lt;"
		case '>':
			escaped = "&gt;"
		}
		if out.Len()+len(escaped)+len(dots) > maxSlackText {
			return out.String() + dots
		}
		out.WriteString(escaped)
	}
	return out.String()
}
