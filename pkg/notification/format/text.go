// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Text returns a message as plain text: its title, and the lines below it.
func Text(m *message.Message) (title, text string) { return textOf(m, message.MaxNotifications) }

// textOf returns a message as plain text, with at most that many notifications.
func textOf(m *message.Message, most int) (title, text string) {
	if isDigest(m) {
		return message.Title(m), digestText(m.Digest(most))
	}
	return message.Title(m), viewText(m.View())
}

func viewText(v message.View) string {
	var out paragraphs
	out.add(v.Note)
	out.add(v.Text)
	out.add(factLines(v.Facts)...)
	out.add(differenceLines(v)...)
	out.add(v.Command)
	out.add(v.Link)
	out.add(footer(v))
	return out.String()
}

// factLines returns facts with their values below each other.
func factLines(facts []message.Fact) []string {
	const width = len("Requested by: ")
	var lines []string
	for _, fact := range facts {
		lines = append(lines, fmt.Sprintf("%-*s%s", width, fact.Label+":", fact.Text()))
		for _, value := range fact.Values {
			if value.URL != "" {
				lines = append(lines, strings.Repeat(" ", width)+value.URL)
			}
		}
	}
	return lines
}

// differenceLines returns the changed fields as a diff.
func differenceLines(v message.View) []string {
	var lines []string
	for _, d := range v.Differences {
		lines = append(lines, pathLine(d))
		if d.Before != "" {
			lines = append(lines, "  - "+d.Before)
		}
		if d.After != "" {
			lines = append(lines, "  + "+d.After)
		}
	}
	if more := moreFields(v); more != "" {
		lines = append(lines, more)
	}
	return lines
}

// pathLine returns the path of a changed field, with its note.
func pathLine(d message.Difference) string {
	if d.Note == "" {
		return d.Path
	}
	return fmt.Sprintf("%s (%s)", d.Path, d.Note)
}

// moreFields says how many changed fields are not shown. It is empty if there are none.
func moreFields(v message.View) string {
	switch {
	case v.MoreDifferences == 0:
		return ""
	case len(v.Differences) == 0:
		return summary.Count(v.MoreDifferences, "changed field")
	}
	return "and " + summary.Count(v.MoreDifferences, "more field")
}

// footer says where and when something happened.
func footer(v message.View) string {
	return joinNonEmpty(" · ", v.Label, clusterName(v.Cluster), message.Moment(v.Time))
}

func clusterName(name string) string {
	if name == "" {
		return ""
	}
	return "cluster " + name
}

func digestText(d message.Digest) string {
	var out paragraphs
	out.add(d.Note)
	for _, group := range d.Groups {
		lines := []string{group.Subject}
		for _, entry := range group.Entries {
			lines = append(lines, "  "+entryLine(entry))
		}
		out.add(append(lines, indented(group.Link)...)...)
	}
	out.add(d.More)
	out.add(joinNonEmpty(" · ", clusterName(d.Cluster), message.Moment(d.Time)))
	return out.String()
}

// entryLine returns an entry of a digest on one line.
func entryLine(e message.Entry) string {
	return fmt.Sprintf("%s %s (%s)", e.Symbol, joinNonEmpty(": ", e.Label, entryText(e)), message.Moment(e.Time))
}

// entryText returns what an entry says beside its label. It can be empty.
func entryText(e message.Entry) string {
	return joinNonEmpty(" - ", e.Title, e.Detail)
}

func indented(text string) []string {
	if text == "" {
		return nil
	}
	return []string{"  " + text}
}

// joinNonEmpty joins the texts that are not empty.
func joinNonEmpty(separator string, texts ...string) string {
	var kept []string
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, separator)
}

// paragraphs collects paragraphs of lines.
type paragraphs struct{ all []string }

// add adds a paragraph, if it has any text.
func (p *paragraphs) add(lines ...string) {
	if text := strings.Join(lines, "\n"); text != "" {
		p.all = append(p.all, text)
	}
}

// String returns the paragraphs, separated by empty lines.
func (p *paragraphs) String() string { return strings.Join(p.all, "\n\n") + "\n" }
