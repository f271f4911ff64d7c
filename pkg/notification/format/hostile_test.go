// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// injection has the markup of all formats, characters that change the direction of text, and invalid UTF-8.
const injection = "<!channel> @here @Channel <@U1> <https://evil.example|x> [x](https://evil.example) **b** `c` " +
	"<script>alert(1)</script> \"onmouseover=\"alert(1) ' <img src=x> --> <!-- ]]> &lt; &amp; {{DATE(2026-01-01)}} ${x} @{x} " +
	"<at>all</at> \u202egnp.exe\u200b\x00\x1b[31m\xff\r\n\r\nBcc: x@evil.example\n\u2028"

// hostileLinks are URLs that must not become links.
var hostileLinks = []string{
	"javascript:alert(1)", "https://a.example/\"><script>", "data:text/html,x", "https://good.example@evil.example/", "https://a.example/ x",
	"https://a.example/" + strings.Repeat("a", 5000),
}

// hostile returns a notification in which everything contains a text.
func hostile(text string, event v1alpha1.NotificationEvent, link string) message.Notification {
	n := message.Notification{
		ID: text, Event: event, Reminder: 1 << 30, Repeated: 1 << 30, Time: noon, Severity: v1alpha1.SeverityWarning, Cluster: text,
		Subject: message.Subject{Kind: text, APIVersion: text, Namespace: text, Name: text, UID: text}, State: text, Headline: text,
		Actor: text, Reason: text, ManagedBy: text, Error: text, Command: text, Link: link, DedupeKey: text, Sequence: -1, MoreFields: 1 << 30,
	}
	for range 200 {
		n.Summary = append(n.Summary, message.Changed{Type: text, Added: 1, Changed: 1 << 40, Removed: 2})
		n.Names = append(n.Names, text)
		n.ChangedBy = append(n.ChangedBy, message.Author{Name: text, Signal: text})
		n.Commits = append(n.Commits, message.Commit{SHA: text, URL: link})
		n.Fields = append(n.Fields, message.Field{Path: text, Type: text, Before: &text, After: &text})
	}
	return n
}

// hostileMessages returns messages in which everything contains a text.
func hostileMessages(text string) map[string]*message.Message {
	all := map[string]*message.Message{}
	for i, link := range append(hostileLinks, "https://a.example/"+strings.Repeat("a", 490)) {
		m := about(hostile(text, v1alpha1.NotifyFailed, link))
		m.ID, m.Cluster = text, text
		all[fmt.Sprintf("one with link %d", i)] = m
	}
	templated := *all["one with link 0"]
	templated.Title, templated.Text, templated.Test = text, text, true
	all["a template"] = &templated
	lines := templated
	lines.Text = strings.Repeat("\n", 500) + strings.Repeat("a\n", 5000)
	all["a template with many lines"] = &lines
	unknown := about(hostile(text, v1alpha1.NotificationEvent(text), ""))
	all["an unknown event"] = unknown
	many := &message.Message{ID: text, Time: time.Time{}, Cluster: text}
	for i := range 150 {
		n := hostile(text, v1alpha1.NotifyBypass, "https://a.example/"+strings.Repeat("a", 2000))
		n.Subject.Name = fmt.Sprintf("%d%s", i, text)
		many.Notifications = append(many.Notifications, n)
	}
	many.Counts = message.CountsOf(many.Notifications)
	all["a digest"] = many
	all["nothing"] = &message.Message{}
	return all
}

func TestHostileMessages(t *testing.T) {
	for what, text := range map[string]string{
		"markup": injection, "long markup": strings.Repeat(injection, 50), "long text": strings.Repeat("é", 20000), "quotes": strings.Repeat(`"\`, 20000),
		"brackets": strings.Repeat("<&>", 20000), "empty": "", "lines": strings.Repeat("\n\t", 3000), "emoji": strings.Repeat("😀", 9000),
	} {
		for name, m := range hostileMessages(text) {
			t.Run(what+"/"+name, func(t *testing.T) { checkAll(t, m) })
		}
	}
}

// FuzzMessages formats messages in which everything contains a random text.
func FuzzMessages(f *testing.F) {
	f.Add(injection, "https://a.example")
	f.Add("<!date^1^{time}|x>", "javascript:x")
	f.Fuzz(func(t *testing.T, text, link string) {
		n := hostile(text, v1alpha1.NotifyConflicted, link)
		checkAll(t, about(n))
		checkAll(t, about(n, sample(v1alpha1.NotifyFailed)))
	})
}

// checkAll checks what every format makes of a message.
func checkAll(t *testing.T, m *message.Message) {
	t.Helper()
	checkSlack(t, m)
	checkTeams(t, m)
	checkMail(t, m)
	checkEvents(t, m)
	checkCloudEvent(t, m)
}

func checkSlack(t *testing.T, m *message.Message) {
	t.Helper()
	body, err := format.Slack(m, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Text   string
		Blocks []map[string]any
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if len(body) > 32<<10 || len(sent.Blocks) == 0 || len(sent.Blocks) > 50 {
		t.Errorf("%d bytes, %d blocks", len(body), len(sent.Blocks))
	}
	if length := utf8.RuneCountInString(sent.Text); length == 0 || length > 3000 {
		t.Errorf("text has %d characters", length)
	}
	if found := regexp.MustCompile(`(?i)[<>]|@(here|channel)|&(lt|gt|amp)?[^a-z]`).FindString(strings.NewReplacer("&lt;", "", "&gt;", "", "&amp;", "").Replace(sent.Text)); found != "" {
		t.Errorf("text has %q: %s", found, sent.Text)
	}
	texts := 0
	for _, block := range sent.Blocks {
		texts += checkSlackBlock(t, block)
	}
	if texts > 13000 {
		t.Errorf("blocks have %d characters", texts)
	}
}

// slackDate is the only markup in blocks.
var slackDate = regexp.MustCompile(`^(<!date\^\d+\^\{date_short_pretty\} \{time\}\|\d+ [A-Z][a-z]{2} \d{4} \d\d:\d\d UTC>|1 Jan 0001 00:00 UTC)$`)

// checkSlackBlock checks a block or an element with all that is in it, and returns the number of characters of its texts.
func checkSlackBlock(t *testing.T, element map[string]any) (texts int) {
	t.Helper()
	limits := map[string]int{"plain_text": 3000, "mrkdwn": 3000, "text": 13000, "link": 3000}
	kind := element["type"].(string)
	text, isText := element["text"].(string)
	length := utf8.RuneCountInString(text)
	switch kind {
	case "plain_text", "mrkdwn", "text", "link":
		if !isText || length == 0 || length > limits[kind] {
			t.Errorf("%s has %d characters", kind, length)
		}
		if kind == "mrkdwn" && !slackDate.MatchString(text) {
			t.Errorf("markup %q", text)
		}
		checkLink(t, kind == "link", element["url"])
	case "header":
		inner := element["text"].(map[string]any)
		if length := utf8.RuneCountInString(inner["text"].(string)); inner["type"] != "plain_text" || length == 0 || length > 150 {
			t.Errorf("header of %d characters: %v", length, inner)
		}
	case "rich_text", "rich_text_section", "rich_text_preformatted", "context":
		if inner, ok := element["elements"].([]any); !ok || len(inner) == 0 || kind == "context" && len(inner) > 10 {
			t.Errorf("%s has %d elements", kind, len(inner))
		}
	case "date":
	default:
		t.Errorf("unexpected type %s", kind)
	}
	inner, _ := element["elements"].([]any)
	for _, one := range inner {
		length += checkSlackBlock(t, one.(map[string]any))
	}
	return length
}

// checkLink checks the URL of an element, which has one if and only if it is a link.
func checkLink(t *testing.T, isLink bool, link any) {
	t.Helper()
	if !isLink && link == nil {
		return
	}
	text, _ := link.(string)
	parsed, err := url.Parse(text)
	if err != nil || !isLink || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.User != nil || parsed.Host == "" || len(text) > 2048 {
		t.Errorf("link to %.200q", text)
	}
}

func checkTeams(t *testing.T, m *message.Message) {
	t.Helper()
	body, err := format.Teams(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 28*1024 {
		t.Errorf("%d bytes", len(body))
	}
	var sent struct {
		Type        string
		Attachments []struct {
			ContentType string
			Content     map[string]any
		}
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if sent.Type != "message" || len(sent.Attachments) != 1 || sent.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" {
		t.Errorf("message = %+v", sent)
	}
	checkCard(t, sent.Attachments[0].Content)
}

// checkCard checks an element of a card with all that is in it. Only elements without Markdown are allowed.
func checkCard(t *testing.T, element any) {
	t.Helper()
	allowed := []string{"AdaptiveCard", "Container", "ColumnSet", "Column", "RichTextBlock", "TextRun", "Action.OpenUrl"}
	switch element := element.(type) {
	case []any:
		for _, inner := range element {
			checkCard(t, inner)
		}
	case map[string]any:
		if kind, ok := element["type"].(string); ok && !slices.Contains(allowed, kind) {
			t.Errorf("unexpected type %s", kind)
		}
		checkLink(t, element["type"] == "Action.OpenUrl", element["url"])
		if text, ok := element["text"].(string); ok && (text == "" || element["type"] != "TextRun") {
			t.Errorf("text %q in %v", text, element["type"])
		}
		for inner := range maps.Values(element) {
			checkCard(t, inner)
		}
	}
}

func checkMail(t *testing.T, m *message.Message) {
	t.Helper()
	subject, text, html := format.Mail(m)
	if subject == "" || len(subject) > 600 || invisible.MatchString(subject) || !utf8.ValidString(subject) {
		t.Errorf("subject = %q", subject)
	}
	if invisible.MatchString(strings.NewReplacer("\n", "", "\t", "").Replace(text)) || !utf8.ValidString(text) {
		t.Errorf("text = %q", text)
	}
	if len(html) > 102*1024 {
		t.Errorf("HTML has %d bytes", len(html))
	}
	checkHTML(t, html)
}

// invisible are characters that end a line or change the direction of text.
var invisible = regexp.MustCompile("[\\x00-\\x1f\\x7f\u200b\u2028\u202e]")

// allowedHTML are the elements of a mail with their attributes, beside class and style.
var allowedHTML = map[string][]string{
	"html": {"lang"}, "head": nil, "meta": {"charset", "name", "content"}, "title": nil, "style": nil, "body": nil, "div": nil, "h1": nil, "span": nil,
	"b": nil, "br": nil, "a": {"href"}, "table": {"role", "width", "cellpadding", "cellspacing", "border"}, "tr": nil, "td": {"align"},
}

// checkHTML checks that a page is well-formed and has only the elements and attributes that the format writes.
func checkHTML(t *testing.T, page string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(page))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, []string{"meta", "br"}, xml.HTMLEntity
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, page)
		}
		switch token := token.(type) {
		case xml.StartElement:
			checkElement(t, token)
		case xml.Comment:
			if comment := string(token); !strings.HasPrefix(comment, "[if mso]>") || len(comment) > 100 {
				t.Errorf("comment %q", comment)
			}
		}
	}
}

func checkElement(t *testing.T, element xml.StartElement) {
	t.Helper()
	attributes, ok := allowedHTML[element.Name.Local]
	if !ok {
		t.Errorf("unexpected element %s", element.Name.Local)
	}
	for _, attribute := range element.Attr {
		switch name := attribute.Name.Local; {
		case name == "href":
			checkLink(t, element.Name.Local == "a", attribute.Value)
		case name == "style":
			if strings.Contains(attribute.Value, "url") || attribute.Value == "" {
				t.Errorf("style of %s = %q", element.Name.Local, attribute.Value)
			}
		case name != "class" && !slices.Contains(attributes, name):
			t.Errorf("unexpected attribute %s of %s", name, element.Name.Local)
		}
	}
}

func checkEvents(t *testing.T, m *message.Message) {
	t.Helper()
	events := format.Events(m)
	if len(events) != min(len(m.Notifications), message.MaxNotifications) {
		t.Errorf("%d events for %d notifications", len(events), len(m.Notifications))
	}
	for _, event := range events {
		if len(event.Message) > 1024 || invisible.MatchString(event.Message) || len(event.Reason) > 128 || event.Type != "Normal" && event.Type != "Warning" {
			t.Errorf("event = %+v", event)
		}
	}
}

func checkCloudEvent(t *testing.T, m *message.Message) {
	t.Helper()
	header, body, err := format.CloudEvent(m, "/source")
	if err != nil || !json.Valid(body) || len(body) > 1<<20 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	for name, values := range header {
		if len(values) != 1 || len(values[0]) > 4096 || regexp.MustCompile(`[^!-~]`).MatchString(values[0]) {
			t.Errorf("%s: %q", name, values)
		}
	}
}
