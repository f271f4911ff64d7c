// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"errors"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/texttemplate"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// maxOutput bounds the output of a template, in bytes, before it is shortened.
const maxOutput = 64 << 10

// Template writes the title and the text of messages about one notification. Nil changes nothing.
type Template struct{ title, text *texttemplate.Template }

// ParseError is an error in one of the two templates.
type ParseError struct {
	// Field is title or text.
	Field string
	Err   error
}

// Error implements error.
func (e *ParseError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the error without the field.
func (e *ParseError) Unwrap() error { return e.Err }

// ParseTemplate parses the templates for the title and the text; empty is none. It runs them on samples of all events. The
// error is a *ParseError, which names the line and what is wrong in it.
func ParseTemplate(title, text string) (*Template, error) {
	if title == "" && text == "" {
		return nil, nil
	}
	t := &Template{}
	for _, part := range []struct {
		field, text string
		parsed      **texttemplate.Template
	}{{"title", title, &t.title}, {"text", text, &t.text}} {
		parsed, err := parse(part.text)
		if err != nil {
			return nil, &ParseError{part.field, err}
		}
		*part.parsed = parsed
	}
	return t, nil
}

func parse(text string) (*texttemplate.Template, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := texttemplate.Parse(text, templateInput{})
	if err != nil {
		return nil, err
	}
	for _, w := range wordings() {
		for _, recovered := range []bool{false, true} {
			sample := Sample(w.event, recovered, time.Unix(0, 0))
			if _, err := parsed.Execute(inputOf(&sample), maxOutput); err != nil {
				return nil, fmt.Errorf("for %s: %w", describeSample(w.event, recovered), err)
			}
		}
	}
	if _, err := parsed.Execute(templateInput{}, maxOutput); err != nil {
		return nil, fmt.Errorf("for a notification of which little is known: %w", err)
	}
	return parsed, nil
}

func describeSample(event v1alpha1.NotificationEvent, recovered bool) string {
	if recovered {
		return "the end of " + string(event)
	}
	return string(event)
}

// Apply sets the title and the text of a message about one notification. What a template leaves empty, or fails to write, is
// not set: a template never prevents a notification.
func (t *Template) Apply(m *Message) {
	if t == nil || m.IsDigest() || len(m.Notifications) == 0 {
		return
	}
	input := inputOf(&m.Notifications[0])
	if title, err := execute(t.title, input); err == nil {
		m.Title = summary.Cut(summary.Line(title), maxTitle)
	}
	if written, err := execute(t.text, input); err == nil {
		m.Text = text(written)
	}
}

var errNoTemplate = errors.New("no template")

func execute(t *texttemplate.Template, input templateInput) (string, error) {
	if t == nil {
		return "", errNoTemplate
	}
	return t.Execute(input, maxOutput)
}

// templateInput is the input of templates: a notification without nested structs. All texts are bounded single lines.
type templateInput struct {
	ID, Event, Severity, Cluster          string
	Recovered                             bool
	Reminder, Repeated                    int
	Time                                  string
	Kind, APIVersion, Namespace, Name     string
	State, Headline, Actor, Reason, Error string
	ManagedBy, Command, Link              string
	Summary                               []Changed
	Names                                 []string
	Authors                               []Author
	Commits                               []Commit
	Fields                                []templateField
	MoreFields                            int
}

// templateField is a Field without pointers.
type templateField struct {
	Path, Type, Before, After string
	Hidden                    bool
}

func inputOf(n *Notification) templateInput {
	input := templateInput{
		ID: line(n.ID, maxName), Event: string(n.Event), Severity: string(n.Severity), Cluster: line(n.Cluster, maxName),
		Recovered: n.Recovered, Reminder: n.Reminder, Repeated: n.Repeated, Time: n.Time.UTC().Format(time.RFC3339),
		Kind: line(n.Subject.Kind, maxName), APIVersion: line(n.Subject.APIVersion, maxName),
		Namespace: line(n.Subject.Namespace, maxName), Name: line(n.Subject.Name, maxName),
		State: sentence(n.State), Headline: sentence(n.Headline), Actor: line(n.Actor, maxName), Reason: sentence(n.Reason),
		Error: sentence(n.Error), ManagedBy: sentence(n.ManagedBy), Command: sentence(n.Command), Link: safeLink(n.Link, maxLink),
		MoreFields: n.MoreFields,
	}
	for _, of := range n.Summary[:min(len(n.Summary), maxTypes)] {
		of.Type = line(of.Type, maxName)
		input.Summary = append(input.Summary, of)
	}
	for _, name := range names(n.Names) {
		input.Names = append(input.Names, name.Text)
	}
	for _, author := range n.ChangedBy[:min(len(n.ChangedBy), MaxNames)] {
		input.Authors = append(input.Authors, Author{line(author.Name, maxName), line(author.Signal, maxName)})
	}
	for _, commit := range n.Commits[:min(len(n.Commits), MaxNames)] {
		input.Commits = append(input.Commits, Commit{line(commit.SHA, maxName), safeLink(commit.URL, maxCommitLink)})
	}
	for _, field := range n.Fields[:min(len(n.Fields), MaxFields)] {
		input.Fields = append(input.Fields, fieldOf(field))
	}
	return input
}

func fieldOf(field Field) templateField {
	f := templateField{Path: line(field.Path, maxPath), Type: line(field.Type, maxName), Hidden: field.Hidden}
	if !field.Hidden {
		f.Before, f.After = value(field.Before), value(field.After)
	}
	return f
}
