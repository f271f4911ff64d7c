// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"cmp"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// maxTeamsBody is below the limit of Teams for a message, 28 KB.
const maxTeamsBody = 27 << 10

// maxTeamsLines is the number of lines of a template's text. The others follow in the last one.
const maxTeamsLines = 60

// teamsMessage is what the workflow "Send webhook alerts to a channel" accepts: a message with one Adaptive Card.
type teamsMessage struct {
	Type        string            `json:"type"`
	Summary     string            `json:"summary"`
	Attachments []teamsAttachment `json:"attachments"`
}

type teamsAttachment struct {
	ContentType string    `json:"contentType"`
	ContentURL  *string   `json:"contentUrl"`
	Content     teamsCard `json:"content"`
}

// teamsCard is an Adaptive Card.
type teamsCard struct {
	Schema       string         `json:"$schema"`
	Type         string         `json:"type"`
	Version      string         `json:"version"`
	FallbackText string         `json:"fallbackText"`
	Body         []cardElement  `json:"body"`
	Actions      []cardAction   `json:"actions,omitempty"`
	Teams        map[string]any `json:"msteams"`
}

// Teams returns a message for Microsoft Teams, as JSON.
//
// Texts are in text runs, which have no Markdown (Adaptive Cards 1.2): there is no markup that could be injected.
func Teams(m *message.Message) ([]byte, error) {
	return fit(items(m, message.MaxNotifications), maxTeamsBody, func(items int) ([]byte, error) {
		if isDigest(m) {
			d := m.Digest(items)
			return encode(teamsBody(d.Title, teamsDigest(d), ""))
		}
		v := limited(m.View(), items)
		return encode(teamsBody(v.Title, teamsView(v), v.Link))
	})
}

// teamsBody returns a message with the elements of a card. link can be empty.
func teamsBody(title string, body []cardElement, link string) teamsMessage {
	card := teamsCard{
		Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.4", FallbackText: title, Body: body,
		Teams: map[string]any{"width": "Full"},
	}
	if link != "" {
		card.Actions = []cardAction{openURL(openText(link), link)}
	}
	return teamsMessage{
		Type: "message", Summary: title,
		Attachments: []teamsAttachment{{ContentType: "application/vnd.microsoft.card.adaptive", Content: card}},
	}
}

func teamsView(v message.View) []cardElement {
	body := []cardElement{teamsHeading(v.Symbol+" "+v.Label, v.Title, cardStyle(v.Severity, v.Recovered))}
	if v.Note != "" {
		body = append(body, richText(cardRun{Text: v.Note, Italic: true}))
	}
	if v.Text != "" {
		body = append(body, teamsLines(v.Text)...)
	}
	for _, fact := range v.Facts {
		body = append(body, teamsFact(fact))
	}
	if lines := teamsDifferences(v); len(lines) > 0 {
		body = append(body, cardElement{Type: "Container", Style: "emphasis", Items: lines})
	}
	if v.Command != "" {
		body = append(body, cardElement{Type: "Container", Style: "emphasis", Items: []cardElement{richText(code(v.Command))}})
	}
	return append(body, teamsFooter(v.Cluster, v.Time))
}

// teamsHeading returns a coloured box with what happened.
func teamsHeading(label, title, style string) cardElement {
	return cardElement{Type: "Container", Style: style, Bleed: true, Items: []cardElement{
		richText(cardRun{Text: label, Size: "Small", Weight: "Bolder"}),
		richText(cardRun{Text: title, Size: "Medium", Weight: "Bolder"}).tight(),
	}}
}

// cardStyle returns the style of a container for a severity.
func cardStyle(severity v1alpha1.NotificationSeverity, recovered bool) string {
	switch {
	case recovered:
		return "good"
	case severity == v1alpha1.SeverityError:
		return "attention"
	case severity == v1alpha1.SeverityWarning:
		return "warning"
	}
	return "accent"
}

// teamsLines returns the lines of a text.
func teamsLines(text string) []cardElement {
	lines := strings.Split(text, "\n")
	if len(lines) > maxTeamsLines {
		rest := strings.Join(strings.Fields(strings.Join(lines[maxTeamsLines-1:], " ")), " ")
		lines = append(lines[:maxTeamsLines-1:maxTeamsLines-1], rest)
	}
	var body []cardElement
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			body = append(body, richText(cardRun{Text: line}).tight())
		}
	}
	return body
}

// teamsFact returns a row with a label and values.
func teamsFact(fact message.Fact) cardElement {
	var texts []cardRun
	for _, value := range runs(fact) {
		texts = append(texts, linked(value.Text, value.URL))
	}
	label := cardColumn{Type: "Column", Width: "110px", Items: []cardElement{richText(cardRun{Text: fact.Label, IsSubtle: true})}}
	values := cardColumn{Type: "Column", Width: "stretch", Items: []cardElement{richText(texts...)}}
	return cardElement{Type: "ColumnSet", Spacing: "Small", Columns: []cardColumn{label, values}}
}

// teamsDifferences returns the changed fields as a diff.
func teamsDifferences(v message.View) []cardElement {
	var lines []cardElement
	for _, d := range v.Differences {
		lines = append(lines, richText(code(pathLine(d))))
		if d.Before != "" {
			lines = append(lines, richText(code("- "+d.Before).coloured("Attention")).tight())
		}
		if d.After != "" {
			lines = append(lines, richText(code("+ "+d.After).coloured("Good")).tight())
		}
	}
	if more := moreFields(v); more != "" {
		lines = append(lines, richText(cardRun{Text: more, IsSubtle: true}))
	}
	return lines
}

func teamsDigest(d message.Digest) []cardElement {
	body := []cardElement{teamsHeading(cmp.Or(clusterName(d.Cluster), "Notifications"), d.Title, cardStyle(d.Severity, false))}
	if d.Note != "" {
		body = append(body, richText(cardRun{Text: d.Note, Italic: true}))
	}
	for _, group := range d.Groups {
		subject := linked(group.Subject, group.Link)
		subject.Weight = "Bolder"
		body = append(body, richText(subject))
		for _, entry := range group.Entries {
			body = append(body, teamsEntry(entry))
		}
	}
	if d.More != "" {
		body = append(body, richText(cardRun{Text: d.More}))
	}
	return append(body, teamsFooter(d.Cluster, d.Time))
}

func teamsEntry(e message.Entry) cardElement {
	colour := map[string]string{"attention": "Attention", "warning": "Warning", "good": "Good"}[cardStyle(e.Severity, e.Recovered)]
	runs := []cardRun{{Text: e.Symbol + " " + e.Label, Weight: "Bolder", Color: colour}}
	if text := entryText(e); text != "" {
		runs = append(runs, cardRun{Text: ": " + text})
	}
	runs = append(runs, cardRun{Text: "  " + message.Moment(e.Time), IsSubtle: true, Size: "Small"})
	return richText(runs...).tight()
}

func teamsFooter(cluster string, at time.Time) cardElement {
	return richText(cardRun{Text: joinNonEmpty(" · ", clusterName(cluster), message.Moment(at)), IsSubtle: true, Size: "Small"})
}
