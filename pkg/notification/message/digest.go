// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Digest is what a message about several notifications shows in every format. Its texts are bounded single lines, as in View.
type Digest struct {
	Title string
	// Heading is the title without the counts, for a format that shows Counted beside it.
	Heading  string
	Severity v1alpha1.NotificationSeverity
	Note     string
	Counted  []Counted
	// Groups have the notifications of one subject each, the worst first.
	Groups []Group
	// More says how many notifications are left out, and which command lists them. Empty if all are shown.
	More    string
	Cluster string
	Time    time.Time
}

// Group has the notifications of a subject.
type Group struct {
	Subject string
	Link    string
	Entries []Entry
}

// Entry is a notification in a digest.
type Entry struct {
	Label     string
	Symbol    string
	Severity  v1alpha1.NotificationSeverity
	Recovered bool
	// Title says what happened, without the subject. Detail is an error, or who made the change. They are empty if they would
	// repeat the label or the title.
	Title, Detail string
	Time          time.Time
}

// Digest returns what the message shows, with at most that many notifications.
func (m *Message) Digest(most int) Digest {
	shown := worstFirst(m.Notifications)
	shown = shown[:min(len(shown), most, MaxNotifications)]
	return Digest{
		Title: Title(m), Heading: m.heading(), Severity: m.Severity(), Note: m.note(), Counted: m.Counted(), Groups: groups(shown), More: m.more(len(shown)),
		Cluster: m.cluster(), Time: m.Time.UTC(),
	}
}

// heading returns what the counts of a digest are about.
func (m *Message) heading() string {
	if m.Thread != "" && len(m.Notifications) > 0 {
		return subject(&m.Notifications[0])
	}
	return summary.Count(m.Total(), "notification")
}

// worstFirst sorts notifications by severity and event, and those of the same event from the newest to the oldest.
func worstFirst(notifications []Notification) []*Notification {
	sorted := make([]*Notification, len(notifications))
	for i := range notifications {
		sorted[i] = &notifications[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Notification) int {
		return cmp.Or(
			cmp.Compare(Rank(b.Severity), Rank(a.Severity)), cmp.Compare(order(a.Event), order(b.Event)), b.Time.Compare(a.Time),
		)
	})
	return sorted
}

// groups groups notifications by subject, in the order of the first of each subject.
func groups(notifications []*Notification) []Group {
	var groups []Group
	for _, n := range notifications {
		of := subject(n)
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Subject == of })
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{Subject: of, Link: safeLink(n.Link, maxLink)})
		}
		groups[i].Entries = append(groups[i].Entries, entry(n))
	}
	return groups
}

func entry(n *Notification) Entry {
	e := Entry{
		Label: Label(n.Event, n.Recovered), Symbol: Symbol(n.Severity, n.Recovered), Severity: n.Severity, Recovered: n.Recovered,
		Title: summary.Cut(withoutSubject(n), maxTitle), Detail: detail(n), Time: n.Time.UTC(),
	}
	if strings.EqualFold(e.Title, e.Label) {
		e.Title = ""
	}
	return e
}

// withoutSubject returns the headline without the subject, with which it usually begins.
func withoutSubject(n *Notification) string {
	title := headline(n)
	before, rest, found := strings.Cut(title, subject(n)+": ")
	if !found || rest == "" {
		return title
	}
	first, size := utf8.DecodeRuneInString(rest)
	return before + string(unicode.ToUpper(first)) + rest[size:]
}

// detail returns the error, or else the first changed fields, or else who made the changes. It is empty if the title says it.
func detail(n *Notification) string {
	text := cmp.Or(sentence(n.Error), changedFields(n), madeBy(n))
	if strings.Contains(headline(n), text) {
		return ""
	}
	return summary.Cut(text, maxTitle)
}

// digestFields is the number of changed fields of a notification that a digest shows.
const digestFields = 2

// digestValue bounds a value that a digest shows, in bytes.
const digestValue = 64

// changedFields returns text such as: /spec/replicas 2 → 5, /spec/paused, and 3 more fields.
func changedFields(n *Notification) string {
	var parts []string
	for i := range n.Fields[:min(len(n.Fields), digestFields)] {
		field := &n.Fields[i]
		text := line(field.Path, maxPath)
		switch before, after := field.Before, field.After; {
		case field.Hidden:
		case before != nil && after != nil:
			text += " " + line(*before, digestValue) + " → " + line(*after, digestValue)
		case after != nil:
			text += " + " + line(*after, digestValue)
		case before != nil:
			text += " - " + line(*before, digestValue)
		}
		parts = append(parts, text)
	}
	if more := len(n.Fields) - len(parts) + n.MoreFields; len(parts) > 0 && more > 0 {
		parts = append(parts, "and "+summary.Count(more, "more field"))
	}
	return strings.Join(parts, ", ")
}

// madeBy names who made the changes, or who requested what happened.
func madeBy(n *Notification) string {
	var by []string
	for _, author := range n.ChangedBy[:min(len(n.ChangedBy), MaxNames)] {
		by = append(by, line(author.Name, maxName))
	}
	if len(by) == 0 && n.Actor != "" {
		by = []string{line(n.Actor, maxName)}
	}
	if len(by) == 0 {
		return ""
	}
	return "by " + strings.Join(by, ", ")
}

// more returns how many notifications are not shown, and which command shows them.
func (m *Message) more(shown int) string {
	left := m.Total() - shown
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf("and %d more: %s %s", left, m.listCommand(), m.namespaceFlag())
}

// listCommand returns the command that lists what most notifications are about.
func (m *Message) listCommand() string {
	changes := 0
	for _, c := range m.Counts {
		if c.Event == v1alpha1.NotifyChange || c.Event == v1alpha1.NotifyBypass {
			changes += c.Count
		}
	}
	if changes*2 >= m.Total() {
		return "kubectl get changes"
	}
	return "kubectl slipstream status"
}

// namespaceFlag selects the namespace if all subjects are in one.
func (m *Message) namespaceFlag() string {
	namespace := ""
	for i := range m.Notifications {
		of := m.Notifications[i].Subject.Namespace
		if of == "" || namespace != "" && of != namespace {
			return "-A"
		}
		namespace = of
	}
	if namespace == "" {
		return "-A"
	}
	return "-n " + line(namespace, maxName)
}
