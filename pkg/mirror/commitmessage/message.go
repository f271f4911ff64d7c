// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitmessage

import (
	"fmt"
	"path"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/texttemplate"
)

const (
	// summarized bounds how many changes a Summary lists.
	summarized = 50
	// maxChanges bounds how many changes a template gets.
	maxChanges = 1000
	// maxMessage bounds the output of a template, in bytes.
	maxMessage = 64 << 10
)

// The operations of a commit as a whole, beside those of a change.
const (
	Create = "CREATE"
	Update = "UPDATE"
	Delete = "DELETE"
	// Batch means that the changes have several operations, Seed that a comparison of the branch with the cluster found them.
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
	// Namespace is empty for cluster-scoped objects.
	Namespace string
	Name      string
}

// String returns a text such as "UPDATE apps/v1/deployments shop/web" or "DELETE v1/namespaces shop".
func (c Change) String() string {
	return fmt.Sprintf("%s %s %s", c.Operation, path.Join(c.Group, c.Version, c.Resource), path.Join(c.Namespace, c.Name))
}

func (c Change) clean() Change {
	return Change{
		Operation: c.Operation, Group: oneLine(c.Group), Version: oneLine(c.Version), Resource: oneLine(c.Resource),
		Namespace: oneLine(c.Namespace), Name: oneLine(c.Name),
	}
}

// About describes a commit beside its changes. Unknown fields are empty.
type About struct {
	// Destination is "namespace/name".
	Destination string
	// Cluster is the uid of the cluster.
	Cluster string
	// Username is the Kubernetes user who made the changes, Author the author's name in the commit.
	Username string
	Author   string
	// Attribution is the source of the username: audit, admission, managed-fields or unknown.
	Attribution string
	// ImpersonatedBy is the user who impersonated Username.
	ImpersonatedBy string
}

// Message is the input of a message template.
type Message struct {
	About
	// Subject is the default first line. Summary is the default body: the list of changes if there are several.
	Subject string
	Summary string
	// Operation is the operation of all changes, Batch if they differ, or Seed.
	Operation string
	// Count is the number of changes; the others are the number of changes with each operation.
	Count, Created, Updated, Deleted int
	// These are set if they are the same for all changes.
	Group, Version, Resource, Namespace, Name string
	// Changes are the first thousand changes, in order.
	Changes []Change
}

// NewMessage returns the message for changes, of which there must be at least one. seed is set if a comparison found them.
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

// intersect returns a with the fields emptied that differ from b.
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

// summary lists the changes, unless the subject names the only one.
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

// MessageTemplate renders the message of a commit. Nil renders the default.
type MessageTemplate struct{ parsed *texttemplate.Template }

// ParseMessage parses a template; empty is none. The error names the line and what is wrong in it.
func ParseMessage(text string) (*MessageTemplate, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := texttemplate.Parse(text, Message{})
	if err != nil {
		return nil, err
	}
	for _, sample := range samples() {
		if _, err := parsed.Execute(sample.message, maxMessage); err != nil {
			return nil, fmt.Errorf("for %s: %w", sample.what, err)
		}
	}
	return &MessageTemplate{parsed: parsed}, nil
}

type sample struct {
	what    string
	message Message
}

// samples returns messages of every kind.
func samples() []sample {
	known := About{
		Destination: "shop/main", Cluster: "7e57", Username: "jane", Author: "Jane Doe", Attribution: "audit", ImpersonatedBy: "joe",
	}
	unknown := About{Destination: "shop/main", Cluster: "7e57", Attribution: "unknown"}
	web := Change{Operation: Update, Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web"}
	namespace := Change{Operation: Delete, Version: "v1", Resource: "namespaces", Name: "shop"}
	return []sample{
		{"one change", NewMessage(known, []Change{web}, false)},
		{"the change of an object without group and namespace", NewMessage(known, []Change{namespace}, false)},
		{"several changes", NewMessage(known, []Change{web, namespace}, false)},
		{"changes that no user is known for", NewMessage(unknown, []Change{web}, true)},
	}
}

// Trailer is a Git trailer of a message.
type Trailer struct{ Key, Value string }

// Text returns the whole message: the output of the template, or the default if the template fails or writes nothing,
// and then the trailers in a paragraph of their own, so that git reads only these as trailers.
func (t *MessageTemplate) Text(m Message, trailers []Trailer) string {
	text := ""
	if t != nil {
		made, _ := t.parsed.Execute(m, maxMessage)
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
