// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"net/url"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Limits of Slack (docs.slack.dev/reference/block-kit). Those of texts are in characters; a character has at least one byte.
const (
	maxSlackHeader = 150
	maxSlackText   = 3000
	// maxSlackBody keeps the texts of all blocks below 13000 characters, at which Slack answers msg_blocks_too_long. There are
	// then far fewer than 50 blocks.
	maxSlackBody = 20 << 10
	// maxSlackBlock is where the next rich text block begins, in bytes of JSON.
	maxSlackBlock = 3000
)

// slackMessage is the body of chat.postMessage and of incoming webhooks. Blocks replace Text, except in previews, in screen
// readers and in other servers that accept Slack's webhooks.
type slackMessage struct {
	Channel string       `json:"channel,omitempty"`
	Thread  string       `json:"thread_ts,omitempty"`
	Text    string       `json:"text"`
	Blocks  []slackBlock `json:"blocks"`
	// Mrkdwn and Parse have Slack show Text as it is: no formatting, no mentions, no links.
	Mrkdwn      bool   `json:"mrkdwn"`
	Parse       string `json:"parse"`
	LinkNames   bool   `json:"link_names"`
	UnfurlLinks bool   `json:"unfurl_links"`
	UnfurlMedia bool   `json:"unfurl_media"`
}

// Slack returns a message for Slack, as JSON. channel is empty for an incoming webhook, and thread for a message that is not in
// a thread.
//
// What a message says is in rich text, whose texts are shown as they are: there is no markup that could be injected.
func Slack(m *message.Message, channel, thread string) ([]byte, error) {
	title, text := Text(m)
	whole := slackMessage{Channel: channel, Thread: thread, Text: slackFallback(title + "\n" + text), Parse: "none"}
	if isDigest(m) {
		return fit(min(len(m.Notifications), message.MaxNotifications), maxSlackBody, func(items int) ([]byte, error) {
			whole.Blocks = slackDigest(m.Digest(items))
			return encode(whole)
		})
	}
	return fit(message.MaxFields, maxSlackBody, func(items int) ([]byte, error) {
		whole.Blocks = slackView(limited(m.View(), items))
		return encode(whole)
	})
}

func slackView(v message.View) []slackBlock {
	header, rest := slackTitle(v.Symbol+" "+v.Title, v.Title)
	var parts []slackElement
	parts = appendSection(parts, rest)
	parts = appendSection(parts, slackPlain(v.Note).italic())
	parts = appendSection(parts, slackPlain(v.Text))
	parts = append(parts, slackFacts(v.Facts)...)
	if lines := differenceLines(v); len(lines) > 0 {
		parts = append(parts, slackElement{Type: "rich_text_preformatted", Elements: []slackElement{slackPlain(strings.Join(lines, "\n"))}})
	}
	if v.Command != "" {
		parts = append(parts, slackElement{Type: "rich_text_preformatted", Elements: []slackElement{slackPlain(v.Command)}})
	}
	if v.Link != "" {
		parts = append(parts, slackSection(slackElement{Type: "link", URL: v.Link, Text: openText(v.Link)}))
	}
	blocks := append([]slackBlock{header}, slackRichText(parts)...)
	return append(blocks, slackContext(v.Time, v.Label, clusterName(v.Cluster)))
}

// slackTitle returns the title as a header, and again as a part of the text if the header is too short for it.
func slackTitle(title, whole string) (header slackBlock, rest slackElement) {
	if len(title) > maxSlackHeader {
		rest = slackPlain(whole).bold()
	}
	return slackBlock{Type: "header", Text: &slackText{Type: "plain_text", Text: summary.Cut(title, maxSlackHeader)}}, rest
}

// slackFacts returns facts as lines.
func slackFacts(facts []message.Fact) []slackElement {
	var lines []slackElement
	for i, fact := range facts {
		if i > 0 {
			lines = append(lines, slackPlain("\n"))
		}
		lines = append(lines, slackPlain(fact.Label+": ").bold())
		for i, value := range fact.Values {
			if i > 0 {
				lines = append(lines, slackPlain(", "))
			}
			lines = append(lines, slackValue(value))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return []slackElement{slackSection(lines...)}
}

func slackValue(value message.Value) slackElement {
	if value.URL != "" {
		return slackElement{Type: "link", URL: value.URL, Text: value.Text}
	}
	return slackPlain(value.Text)
}

// openText is the text of a link to the subject. It names the host, so that readers see where it leads.
func openText(link string) string {
	parsed, err := url.Parse(link)
	if err != nil {
		return "Open"
	}
	return "Open on " + summary.Cut(parsed.Host, maxSlackHeader)
}

func slackDigest(d message.Digest) []slackBlock {
	header, rest := slackTitle(message.Symbol(d.Severity, false)+" "+d.Title, d.Title)
	var parts []slackElement
	parts = appendSection(parts, rest)
	parts = appendSection(parts, slackPlain(d.Note).italic())
	for _, group := range d.Groups {
		subject := slackPlain(group.Subject)
		if group.Link != "" {
			subject = slackElement{Type: "link", URL: group.Link, Text: group.Subject}
		}
		parts = appendSection(parts, subject.bold())
		for _, entry := range group.Entries {
			parts = append(parts, slackEntry(entry))
		}
	}
	parts = appendSection(parts, slackPlain(d.More))
	blocks := append([]slackBlock{header}, slackRichText(parts)...)
	return append(blocks, slackContext(d.Time, clusterName(d.Cluster)))
}

// slackEntry returns an entry of a digest as a list with one item.
func slackEntry(e message.Entry) slackElement {
	item := slackSection(slackPlain(e.Symbol + " " + e.Label).bold())
	if text := entryText(e); text != "" {
		item.Elements = append(item.Elements, slackPlain(": "+text))
	}
	item.Elements = append(item.Elements, slackPlain("  "), slackDate(e.Time).italic())
	return slackElement{Type: "rich_text_list", Style: "bullet", Elements: []slackElement{item}}
}

// slackContext returns the line below a message. Slack shows the time in the time zone of the reader.
func slackContext(at time.Time, texts ...string) slackBlock {
	when := slackElement{Type: "mrkdwn", Text: slackMarkupTime(at)}
	block := slackBlock{Type: "context", Elements: []slackElement{when}}
	if text := joinNonEmpty(" · ", texts...); text != "" {
		block.Elements = append(block.Elements, slackElement{Type: "plain_text", Text: text})
	}
	return block
}
