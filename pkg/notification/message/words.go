// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// wording has the words for the notifications of an event.
type wording struct {
	event v1alpha1.NotificationEvent
	// severity is the usual one.
	severity v1alpha1.NotificationSeverity
	// label is a heading, noun is what is counted. The others are for the end of what the event says.
	label, noun, endedLabel, endedNoun string
}

// wordings returns the words for all events, the worst first.
func wordings() []wording {
	const info, warning, severe = v1alpha1.SeverityInfo, v1alpha1.SeverityWarning, v1alpha1.SeverityError
	return []wording{
		{v1alpha1.NotifyOwnershipConflict, severe, "Ownership conflict", "ownership conflict", "Ownership resolved", "resolved ownership conflict"},
		{v1alpha1.NotifyDestinationFailing, severe, "Destination failing", "failing destination", "Destination recovered", "recovered destination"},
		{v1alpha1.NotifyCatalogFailing, severe, "Catalog failing", "failing catalog", "Catalog recovered", "recovered catalog"},
		{v1alpha1.NotifyPipelineFailing, severe, "Pipeline failing", "failing pipeline", "Pipeline recovered", "recovered pipeline"},
		{v1alpha1.NotifyFailed, severe, "Failed", "failure", "Failure resolved", "resolved failure"},
		{v1alpha1.NotifyConflicted, warning, "Conflict", "conflict", "Conflict resolved", "resolved conflict"},
		{v1alpha1.NotifyBypass, warning, "Bypass", "bypass", "Bypass resolved", "resolved bypass"},
		{v1alpha1.NotifyPrompted, info, "Decision needed", "prompt", "Decided", "answered prompt"},
		{v1alpha1.NotifyDismissed, info, "Dismissed", "dismissal", "Dismissal ended", "ended dismissal"},
		{v1alpha1.NotifyCompleted, info, "Synced", "completed sync", "Sync ended", "ended sync"},
		{v1alpha1.NotifyChange, info, "Change", "change", "Change ended", "ended change"},
	}
}

// wordsFor returns the words for an event. Unknown events are notifications.
func wordsFor(event v1alpha1.NotificationEvent) wording {
	for _, w := range wordings() {
		if w.event == event {
			return w
		}
	}
	return wording{
		severity: v1alpha1.SeverityInfo, label: "Notification", noun: "notification", endedLabel: "Resolved", endedNoun: "resolved notification",
	}
}

// order returns the position of an event among all, the worst first.
func order(event v1alpha1.NotificationEvent) int {
	return slices.IndexFunc(wordings(), func(w wording) bool { return w.event == event })
}

// Label returns one or two words for what happened, such as Conflict or Conflict resolved.
func Label(event v1alpha1.NotificationEvent, recovered bool) string {
	w := wordsFor(event)
	if recovered {
		return w.endedLabel
	}
	return w.label
}

// Symbol returns a character that stands for a severity beside its word. None has a coloured form as an emoji.
func Symbol(severity v1alpha1.NotificationSeverity, recovered bool) string {
	switch {
	case recovered:
		return "✓"
	case severity == v1alpha1.SeverityError:
		return "✗"
	case severity == v1alpha1.SeverityWarning:
		return "▲"
	}
	return "●"
}

// Counted is a number of notifications in words, such as 2 failures.
type Counted struct {
	Text      string
	Severity  v1alpha1.NotificationSeverity
	Recovered bool
}

// Counted returns the numbers of notifications in words, the worst first and what has ended last.
func (m *Message) Counted() []Counted {
	var counted []Counted
	for _, recovered := range []bool{false, true} {
		for _, w := range append(wordings(), wordsFor("")) {
			if n := m.count(w.event, recovered); n > 0 {
				counted = append(counted, w.counted(n, recovered))
			}
		}
	}
	return counted
}

// count returns the number of notifications of an event. The empty event stands for all unknown ones.
func (m *Message) count(event v1alpha1.NotificationEvent, recovered bool) int {
	n := 0
	for _, c := range m.Counts {
		if wordsFor(c.Event).event == event && c.Recovered == recovered {
			n += c.Count
		}
	}
	return n
}

func (w wording) counted(n int, recovered bool) Counted {
	if recovered {
		return Counted{Text: summary.Count(n, w.endedNoun), Severity: v1alpha1.SeverityInfo, Recovered: true}
	}
	return Counted{Text: summary.Count(n, w.noun), Severity: w.severity}
}

// joinCounted returns the numbers of a message on one line.
func (m *Message) joinCounted() string {
	var texts []string
	for _, c := range m.Counted() {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, ", ")
}

// signal returns how an author is known, as a user would say it.
func signal(s string) string {
	switch v1alpha1.AttributionSignal(s) {
	case v1alpha1.SignalAudit:
		return "audit log"
	case v1alpha1.SignalAdmission:
		return "admission"
	case v1alpha1.SignalManagedFields:
		return "field manager"
	}
	return ""
}
