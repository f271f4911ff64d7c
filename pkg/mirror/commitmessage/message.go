// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitmessage

import (
	"fmt"
	"path"
	"strings"
	"text/template"
)

const (
	// summarized is how many changes a Summary names.
	summarized = 50
	// maxChanges is how many changes a template sees.
	maxChanges = 1000
	// maxMessage bounds what a template may write, in bytes.
	maxMessage = 64 << 10
)

// The operations of a commit as a whole, beside those of a change.
const (
	Create = "CREATE"
	Update = "UPDATE"
	Delete = "DELETE"
	// Batch says that the changes are of several operations, Seed that a comparison found them.
	Batch = "BATCH"
	Seed  = "SEED"
)

// Change is one file's change.
type Change struct {
	// Operation is Create, Update or Delete.
	Operation string
	Group     string
	Version   string
	Resource  string
	// Namespace is empty for objects without one.
	Namespace string
	Name      string
}

// String is "UPDATE apps/v1/deployments shop/web", or "DELETE v1/namespaces shop".
func (c Change) String() string {
	return fmt.Sprintf("%s %s %s", c.Operation, path.Join(c.Group, c.Version, c.Resource), path.Join(c.Namespace, c.Name))
}

func (c Change) clean() Change {
	return Change{
		Operation: c.Operation, Group: oneLine(c.Group), Version: oneLine(c.Version), Resource: oneLine(c.Resource),
		Namespace: oneLine(c.Namespace), Name: oneLine(c.Name),
	}
}

// About is what is known of a commit beside its changes. What is not known is empty.
type About struct {
	// Destination is "namespace/name".
	Destination string
	// Cluster is the uid of the cluster.
	Cluster string
	// Username is the Kubernetes user who made the changes, Author the name in the commit.
	Username string
	Author   string
	// Attribution is the signal that told the user: audit, admission, managed-fields or unknown.
	Attribution string
	// ImpersonatedBy is the user behind an impersonated one.
	ImpersonatedBy string
}

// Message is what a message template is run on.
type Message struct {
	About
	// Subject is the first line without a template, Summary what follows it: the changes when there are several.
	Subject string
	Summary string
	// Operation is that of all changes, Batch when they differ, or Seed.
	Operation string
	// Count is how many changes there are, of which the others say how many are of each operation.
	Count, Created, Updated, Deleted int
	// These are what all changes have in common, and otherwise empty.
	Group, Version, Resource, Namespace, Name string
	// Changes are the changes in order, the first thousand of them.
	Changes []Change
}

// NewMessage describes changes, at least one. seed says that a comparison found them.
func NewMessage(about About, changes []Change, seed bool) Message {
	cleaned := make([]Change, len(changes))
	for i, change := range changes {
		cleaned[i] = change.clean()
	}
	common := cleaned[0]
	m := Message{Count: len(cleaned), Changes: cleaned, About: About{
		Destination: oneLine(about.Destination), Cluster: oneLine(about.Cluster), Username: oneLine(about.Username),
		Author: oneLine(about.Author), Attribution: oneLine(about.Attribution), ImpersonatedBy: oneLine(about.ImpersonatedBy),
	}}
	for _, change := range cleaned {
		m.count(change.Operation)
		common = intersect(common, change)
	}
	m.Group, m.Version, m.Resource, m.Namespace, m.Name = common.Group, common.Version, common.Resource, common.Namespace, common.Name
	if m.Operation = common.Operation; m.Operation == "" {
		m.Operation = Batch
	}
	if seed {
		m.Operation = Seed
	}
	m.Subject, m.Summary = m.subject(), m.summary()
	m.Changes = m.Changes[:min(len(m.Changes), maxChanges)]
	return m
}

func (m *Message) count(operation string) {
	switch operation {
	case Create:
		m.Created++
	case Update:
		m.Updated++
	case Delete:
		m.Deleted++
	}
}

// intersect empties what two changes do not have in common.
func intersect(a, b Change) Change {
	for _, part := range []struct {
		mine  *string
		other string
	}{
		{&a.Operation, b.Operation},
		{&a.Group, b.Group},
		{&a.Version, b.Version},
		{&a.Resource, b.Resource},
		{&a.Namespace, b.Namespace},
		{&a.Name, b.Name},
	} {
		if *part.mine != part.other {
			*part.mine = ""
		}
	}
	return a
}

func (m *Message) subject() string {
	if m.Count == 1 && m.Operation == Seed {
		return fmt.Sprintf("[%s] %s", m.Operation, m.Changes[0])
	}
	if m.Count == 1 {
		return fmt.Sprintf("[%s]%s", m.Operation, strings.TrimPrefix(m.Changes[0].String(), m.Operation))
	}
	var parts []string
	for _, part := range []struct {
		count int
		word  string
	}{{m.Created, "created"}, {m.Updated, "updated"}, {m.Deleted, "deleted"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.word))
		}
	}
	return fmt.Sprintf("[%s] %d objects: %s", m.Operation, m.Count, strings.Join(parts, ", "))
}

// summary names the changes, unless the subject has done so.
func (m *Message) summary() string {
	if m.Count == 1 {
		return ""
	}
	var lines []string
	for _, change := range m.Changes[:min(m.Count, summarized)] {
		lines = append(lines, change.String())
	}
	if more := m.Count - summarized; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// MessageTemplate makes the message of a commit. Nil makes the one without a template.
type MessageTemplate struct{ parsed *template.Template }

// ParseMessage reads a template; empty is none. The error says in which line what is wrong.
func ParseMessage(text string) (*MessageTemplate, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := parseTemplate(text, Message{})
	if err != nil {
		return nil, err
	}
	for _, sample := range samples() {
		if _, err := execute(parsed, sample.message, maxMessage); err != nil {
			return nil, fmt.Errorf("for %s: %w", sample.what, err)
		}
	}
	return &MessageTemplate{parsed: parsed}, nil
}

type sample struct {
	what    string
	message Message
}

// samples are messages of every sort.
func samples() []sample {
	known := About{
		Destination: "shop/main", Cluster: "7e57", Username: "jane", Author: "Jane Doe", Attribution: "audit", ImpersonatedBy: "joe",
	}
	nobody := About{Destination: "shop/main", Cluster: "7e57", Attribution: "unknown"}
	web := Change{Operation: Update, Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web"}
	namespace := Change{Operation: Delete, Version: "v1", Resource: "namespaces", Name: "shop"}
	return []sample{
		{"one change", NewMessage(known, []Change{web}, false)},
		{"the change of an object without group and namespace", NewMessage(known, []Change{namespace}, false)},
		{"several changes", NewMessage(known, []Change{web, namespace}, false)},
		{"changes that nobody is known for", NewMessage(nobody, []Change{web}, true)},
	}
}

// Trailer is a line for programs at the end of a message.
type Trailer struct{ Key, Value string }

// Text returns the whole message: what the template writes, or what is said without one where it fails or writes
// nothing, and then the trailers, in a paragraph of their own, so that only these are trailers for git.
func (t *MessageTemplate) Text(m Message, trailers []Trailer) string {
	text := ""
	if t != nil {
		made, _ := execute(t.parsed, m, maxMessage)
		text = paragraphs(made)
	}
	if text == "" {
		text = paragraphs(m.Subject + "\n\n" + m.Summary)
	}
	var whole strings.Builder
	whole.WriteString(text + "\n")
	for _, trailer := range trailers {
		fmt.Fprintf(&whole, "\n%s: %s", trailer.Key, oneLine(trailer.Value))
	}
	return whole.String() + "\n"
}
