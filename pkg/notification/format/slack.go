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
	// maxSlackLength keeps the texts and links of all blocks below 13000 characters, at which Slack answers msg_blocks_too_long.
	// There are then far fewer than 50 blocks.
	maxSlackLength = 12000
	// maxSlackBlock is where the next rich text block begins.
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
	blocks := func(items int) []slackBlock {
		if isDigest(m) {
			return slackDigest(m.Digest(items))
		}
		return slackView(limited(m.View(), items))
	}
	shown := largest(items(m, message.MaxNotifications), func(items int) bool { return slackLength(blocks(items)) <= maxSlackLength })
	return encode(slackMessage{
		Channel: channel, Thread: thread, Text: slackFallback(title + "\n" + text), Blocks: blocks(shown), Parse: "none",
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
		for _, value := range runs(fact) {
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
	for i, group := range d.Groups {
		if i > 0 {
			parts = append(parts, slackSection(slackPlain("\n")))
		}
		parts = appendSection(parts, slackValue(message.Value{Text: group.Subject, URL: group.Link}).bold())
		for _, entry := range group.Entries {
			parts = append(parts, slackEntry(entry))
		}
	}
	parts = appendSection(parts, slackPlain(d.More))
	blocks := append([]slackBlock{header}, slackRichText(parts)...)
	return append(blocks, slackContext(d.Time, clusterName(d.Cluster)))
}

// slackEntry returns an entry of a digest as a line.
func slackEntry(e message.Entry) slackElement {
	line := slackSection(slackPlain(e.Symbol + " " + e.Label).bold())
	if text := entryText(e); text != "" {
		line.Elements = append(line.Elements, slackPlain(": "+text))
	}
	line.Elements = append(line.Elements, slackPlain("  "), slackDate(e.Time))
	return line
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
