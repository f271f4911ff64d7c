// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits of Slack, in characters: docs.slack.dev/reference/block-kit/blocks, docs.slack.dev/reference/methods/chat.postMessage.
const (
	maxSlackBlocks = 50
	// maxSlackShown is the sum of the texts of all blocks, beyond which Slack answers msg_blocks_too_long.
	maxSlackShown = 13200
	// maxSlackFallback is where Slack truncates text.
	maxSlackFallback = 40000
	maxSlackURL      = 3000
)

// SlackPath is the path of the incoming webhook, which must stay secret.
const SlackPath = "/services/T0123ABCD/B0456EFGH/xYz0SlackWebhookCredential"

// Slack starts an incoming webhook of Slack.
func Slack(t testing.TB) *Receiver {
	return start(t, SlackPath, func(request Request) (Answer, []string) {
		if request.Path != SlackPath {
			return Answer{Status: http.StatusNotFound, Body: "no_service"}, []string{"unknown path"}
		}
		if faults := checkSlack(request, false); len(faults) > 0 {
			return Answer{Status: http.StatusBadRequest, Body: "invalid_blocks"}, faults
		}
		return Answer{Status: http.StatusOK, Body: "ok"}, nil
	})
}

// SlackAPI starts the API of Slack, for a bot with a token.
func SlackAPI(t testing.TB, token string) *Receiver {
	bot := &slackBot{token: token, known: map[string]bool{}}
	return start(t, "/api", bot.post)
}

// slackBot is the method chat.postMessage.
type slackBot struct {
	token string
	// known are the IDs of posted messages.
	known map[string]bool
}

func (b *slackBot) post(request Request) (Answer, []string) {
	refuse := func(code string, faults ...string) (Answer, []string) {
		return Answer{Status: http.StatusOK, Body: fmt.Sprintf(`{"ok":false,"error":%q}`, code)}, faults
	}
	switch {
	case request.Path != "/api/chat.postMessage":
		return refuse("unknown_method", "unknown path "+request.Path)
	case request.Header.Get("Authorization") != "Bearer "+b.token:
		return refuse("invalid_auth")
	}
	if faults := checkSlack(request, true); len(faults) > 0 {
		return refuse("invalid_blocks", faults...)
	}
	var message struct {
		Thread string `json:"thread_ts"`
	}
	if err := json.Unmarshal(request.Body, &message); err != nil {
		return refuse("invalid_json", err.Error())
	}
	if message.Thread != "" && !b.known[message.Thread] {
		return refuse("cannot_reply_to_message", "unknown thread "+message.Thread)
	}
	ts := fmt.Sprintf("1503435956.%06d", len(b.known)+1)
	b.known[ts] = true
	return Answer{Status: http.StatusOK, Body: fmt.Sprintf(`{"ok":true,"channel":"C024BE91L","ts":%q,"message":{}}`, ts)}, nil
}

var slackTimestamp = regexp.MustCompile(`^\d+\.\d{6}$`)

// checkSlack checks a message: the documented fields and limits of those kinds of blocks that show text.
func checkSlack(request Request, bot bool) []string {
	message, faults := decode(request)
	if len(faults) > 0 {
		return faults
	}
	whole := kind{required: []string{"text", "blocks"}, fields: map[string]rule{
		"text": text(maxSlackFallback), "blocks": list(maxSlackBlocks, of(slackBlocks)), "mrkdwn": oneOf(true, false),
		"parse": oneOf("none", "full"), "link_names": oneOf(true, false), "unfurl_links": oneOf(true, false), "unfurl_media": oneOf(true, false),
	}}
	if bot {
		whole.required = append(whole.required, "channel")
		whole.fields["channel"] = text(100)
		whole.fields["thread_ts"] = func(path string, value any) []string {
			if ts, _ := value.(string); !slackTimestamp.MatchString(ts) {
				return []string{path + " is no timestamp"}
			}
			return nil
		}
	}
	faults = whole.check("message", message)
	if shown := shownLength(message["blocks"]); shown > maxSlackShown {
		faults = append(faults, fmt.Sprintf("the blocks have %d characters, must be at most %d", shown, maxSlackShown))
	}
	return faults
}

// shownLength returns the length of all texts in a value.
func shownLength(value any) (length int) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			length += shownLength(each)
		}
	case map[string]any:
		for name, each := range value {
			if text, ok := each.(string); ok && name == "text" {
				length += utf8.RuneCountInString(text)
				continue
			}
			length += shownLength(each)
		}
	}
	return length
}

var slackStyle = func(path string, value any) []string {
	style := kind{fields: map[string]rule{
		"bold": oneOf(true, false), "italic": oneOf(true, false), "strike": oneOf(true, false), "code": oneOf(true, false),
	}}
	object, ok := value.(map[string]any)
	if !ok {
		return []string{path + " must be an object"}
	}
	return style.check(path, object)
}

var slackInline = map[string]kind{
	"text": {required: []string{"text"}, fields: map[string]rule{"text": text(maxSlackFallback), "style": slackStyle}},
	"link": {required: []string{"url"}, fields: map[string]rule{"url": link(maxSlackURL), "text": text(maxSlackFallback), "style": slackStyle}},
	"date": {required: []string{"timestamp", "format"}, fields: map[string]rule{
		"timestamp": anything, "format": text(500), "fallback": text(500), "url": link(maxSlackURL), "style": slackStyle,
	}},
}

var slackSection = kind{required: []string{"elements"}, fields: map[string]rule{
	"elements": list(1000, of(slackInline)), "border": oneOf(0.0, 1.0),
}}

var slackRich = map[string]kind{
	"rich_text_section": slackSection, "rich_text_preformatted": slackSection, "rich_text_quote": slackSection,
	"rich_text_list": {required: []string{"style", "elements"}, fields: map[string]rule{
		"style": oneOf("bullet", "ordered"), "indent": anything, "offset": anything, "border": oneOf(0.0, 1.0),
		"elements": list(1000, of(map[string]kind{"rich_text_section": slackSection})),
	}},
}

// slackText returns the kinds of text objects with a limit.
func slackText(most int) map[string]kind {
	return map[string]kind{
		"plain_text": {required: []string{"text"}, fields: map[string]rule{"text": text(most), "emoji": oneOf(true, false)}},
		"mrkdwn":     {required: []string{"text"}, fields: map[string]rule{"text": safeMarkup(most), "verbatim": oneOf(true, false)}},
	}
}

// safeMarkup is markup without mentions of users, groups or channels, and without links: < begins them.
func safeMarkup(most int) rule {
	return func(path string, value any) []string {
		faults := text(most)(path, value)
		if markup, _ := value.(string); strings.ContainsAny(markup, "<>") && !strings.HasPrefix(markup, "<!date^") {
			faults = append(faults, path+" has markup that mentions or links: "+markup)
		}
		return faults
	}
}

var slackBlocks = map[string]kind{
	"divider": {},
	"header": {required: []string{"text"}, fields: map[string]rule{
		"text": of(map[string]kind{"plain_text": slackText(150)["plain_text"]}),
	}},
	"section": {fields: map[string]rule{"text": of(slackText(3000)), "fields": list(10, of(slackText(2000)))}},
	"context": {required: []string{"elements"}, fields: map[string]rule{"elements": list(10, of(slackText(3000)))}},
	"rich_text": {required: []string{"elements"}, fields: map[string]rule{
		"elements": list(1000, of(slackRich)),
	}},
}
