// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// View is what a message about one notification shows in every format. Its texts are single lines, except Text. They are
// bounded, and invisible characters are escaped. A format only has to escape its own markup.
type View struct {
	Title string
	// Short is the title without the subject.
	Short     string
	Label     string
	Symbol    string
	Severity  v1alpha1.NotificationSeverity
	Recovered bool
	// Note says that the message is a test. Empty for others.
	Note string
	// Text was written by a template and replaces Facts, Differences and Command. It can have several lines.
	Text        string
	Facts       []Fact
	Differences []Difference
	// MoreDifferences is the number of changed fields that are not in Differences.
	MoreDifferences int
	Command         string
	// Link is a URL with http or https. Empty if there is none.
	Link    string
	Cluster string
	Time    time.Time
}

// Fact is a property of what happened.
type Fact struct {
	Label string
	// Values are shown in a row, separated by commas. There is at least one.
	Values []Value
}

// Value is a text, with a link if URL is set.
type Value struct{ Text, URL string }

// Text returns the values without links.
func (f Fact) Text() string {
	texts := make([]string, len(f.Values))
	for i, value := range f.Values {
		texts[i] = value.Text
	}
	return strings.Join(texts, ", ")
}

// testNote is the note of a test.
const testNote = "This is a test. Its content is made up."

// View returns what the message shows. It must be about one notification, and shows the first of several.
func (m *Message) View() View {
	if len(m.Notifications) == 0 {
		return View{Title: Title(m), Label: Label("", false), Symbol: Symbol("", false), Cluster: m.cluster(), Time: m.Time.UTC(), Note: m.note()}
	}
	n := &m.Notifications[0]
	v := View{
		Title: Title(m), Short: m.short(), Label: Label(n.Event, n.Recovered), Symbol: Symbol(n.Severity, n.Recovered),
		Severity: n.Severity, Recovered: n.Recovered, Note: m.note(), Link: safeLink(n.Link, maxLink), Cluster: m.cluster(), Time: n.Time.UTC(),
	}
	if v.Text = text(m.Text); v.Text != "" {
		return v
	}
	v.Facts, v.Command = facts(n), sentence(n.Command)
	v.Differences, v.MoreDifferences = differences(n)
	return v
}

// Moment returns a time for users, in UTC and to the minute.
func Moment(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04 UTC") }

func (m *Message) cluster() string { return line(m.Cluster, maxName) }

func (m *Message) note() string {
	if m.Test {
		return testNote
	}
	return ""
}

// Title returns the title of a message: one line of at most maxTitle bytes.
func Title(m *Message) string {
	title := sentence(m.Title)
	switch {
	case title != "":
	case m.IsDigest() || len(m.Notifications) == 0:
		title = m.digestTitle()
	default:
		title = headline(&m.Notifications[0])
	}
	if m.Test {
		title = "Test: " + title
	}
	return summary.Cut(title, maxTitle)
}

// short returns the title without the subject. A title by a template is unchanged.
func (m *Message) short() string {
	if m.Title != "" || m.Test {
		return Title(m)
	}
	return summary.Cut(withoutSubject(&m.Notifications[0]), maxTitle)
}

// digestTitle counts the notifications, after their subject if they have the same.
func (m *Message) digestTitle() string {
	counted := m.Counted()
	switch {
	case m.Thread != "" && len(m.Notifications) > 0:
		return subject(&m.Notifications[0]) + ": " + m.joinCounted()
	case len(counted) == 1:
		return counted[0].Text
	}
	return fmt.Sprintf("%s: %s", summary.Count(m.Total(), "notification"), m.joinCounted())
}

// headline returns the headline of a notification, and whether it is a reminder or a repetition.
func headline(n *Notification) string {
	title := sentence(n.Headline)
	if title == "" {
		title = subject(n) + ": " + Label(n.Event, n.Recovered)
	}
	if n.Reminder > 0 {
		title = fmt.Sprintf("Reminder %d: %s", n.Reminder, title)
	}
	if n.Repeated > 0 {
		title = fmt.Sprintf("%s (%s)", title, again(n.Repeated))
	}
	return title
}

func again(times int) string {
	return summary.Count(times, "more time")
}

// subject names the object of a notification, such as Environment teams/alice.
func subject(n *Notification) string {
	name := line(n.Subject.Name, maxName)
	if n.Subject.Namespace != "" {
		name = line(n.Subject.Namespace, maxName) + "/" + name
	}
	return strings.TrimSpace(line(n.Subject.Kind, maxName) + " " + name)
}
