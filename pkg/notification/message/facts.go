// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// facts returns what is known about a notification beside its headline, the most important first.
func facts(n *Notification) []Fact {
	var found []Fact
	add := func(label string, values ...Value) {
		values = slices.DeleteFunc(values, func(v Value) bool { return v.Text == "" })
		if len(values) > 0 {
			found = append(found, Fact{label, limited(values)})
		}
	}
	add("Error", Value{Text: sentence(n.Error)})
	add("State", Value{Text: state(n)})
	add("Changed", changed(n.Summary)...)
	add("Workloads", names(n.Names)...)
	add("Changed by", authors(n.ChangedBy)...)
	add("Requested by", Value{Text: line(n.Actor, maxName)})
	add("Reason", Value{Text: sentence(n.Reason)})
	if manager := sentence(n.ManagedBy); !strings.Contains(sentence(n.Headline), manager) {
		add("Managed by", Value{Text: manager})
	}
	add("Commit", commits(n.Commits)...)
	if n.Repeated > 0 {
		add("Repeated", Value{Text: again(n.Repeated) + " since the last notification"})
	}
	return found
}

// limited returns the first values, with the number of those that exceed maxFact.
func limited(values []Value) []Value {
	size := 0
	for i, value := range values {
		if size += len(value.Text); i > 0 && size > maxFact {
			return append(values[:i:i], Value{Text: fmt.Sprintf("and %d more", len(values)-i)})
		}
	}
	return values
}

// state returns the state of the subject if neither the headline nor the error says it.
func state(n *Notification) string {
	state := sentence(n.State)
	if reason := sentence(n.Error); reason != "" && strings.Contains(state, reason) {
		return ""
	}
	if strings.HasSuffix(strings.ToLower(sentence(n.Headline)), strings.ToLower(state)) {
		return ""
	}
	return state
}

// changed returns numbers such as 2 Deployments changed.
func changed(types []Changed) []Value {
	var values []Value
	for _, of := range types[:min(len(types), maxTypes)] {
		for _, part := range []struct {
			n    int
			done string
		}{{of.Changed, "changed"}, {of.Added, "added"}, {of.Removed, "removed"}} {
			if part.n > 0 {
				values = append(values, Value{Text: summary.Count(part.n, line(of.Type, maxName)) + " " + part.done})
			}
		}
	}
	return values
}

func names(of []string) []Value {
	values := make([]Value, min(len(of), MaxNames))
	for i := range values {
		values[i].Text = line(of[i], maxName)
	}
	return values
}

// authors returns authors such as jane@example.com (audit log).
func authors(of []Author) []Value {
	values := make([]Value, min(len(of), MaxNames))
	for i := range values {
		name := line(of[i].Name, maxName)
		if name == "" {
			name = "unknown"
		}
		if known := signal(of[i].Signal); known != "" {
			name = fmt.Sprintf("%s (%s)", name, known)
		}
		values[i].Text = name
	}
	return values
}

// commits returns the short hashes of commits, with links.
func commits(of []Commit) []Value {
	const short = 7
	values := make([]Value, min(len(of), MaxNames))
	for i := range values {
		sha := line(of[i].SHA, maxName)
		values[i] = Value{Text: strings.ToValidUTF8(sha[:min(len(sha), short)], ""), URL: safeLink(of[i].URL, maxCommitLink)}
	}
	return values
}

// Difference is a changed field as it is shown.
type Difference struct {
	Path string
	// Note describes a change without values, such as value hidden.
	Note string
	// Before and After are values as JSON. Empty if there is none.
	Before, After string
}

// differences returns the changed fields, and the number of those that are left out.
func differences(n *Notification) (shown []Difference, more int) {
	fields := n.Fields[:min(len(n.Fields), MaxFields)]
	for _, field := range fields {
		shown = append(shown, differenceOf(field))
	}
	return shown, max(n.MoreFields, 0) + len(n.Fields) - len(fields)
}

// wholeObject is the empty JSON pointer in words.
const wholeObject = "(the whole object)"

func differenceOf(field Field) Difference {
	d := Difference{Path: cmp.Or(line(field.Path, maxPath), wholeObject)}
	switch {
	case field.Hidden:
		d.Note = "value hidden"
	case field.Before == nil && field.After == nil:
		d.Note = strings.ToLower(line(field.Type, maxName))
	default:
		d.Before, d.After = value(field.Before), value(field.After)
	}
	return d
}

// value returns a value of a field. Empty if there is none.
func value(v *string) string {
	if v == nil {
		return ""
	}
	return line(*v, MaxValue)
}
