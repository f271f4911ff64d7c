// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// listedChanges is how many changes the body of a commit message names.
const listedChanges = 50

// Identity is what commits say about the server that made them.
type Identity struct {
	// ClusterUID is the uid of the kube-system namespace.
	ClusterUID string
	// Namespace and Name are the server's own.
	Namespace string
	Name      string
	// Instance tells one process from another.
	Instance string
}

// Message is what the commit message template of a GitRepoConfig is executed with.
type Message struct {
	// Subject is the line that is used without a template.
	Subject string
	// Destination is "namespace/name".
	Destination string
	// Author is the name of the commit's author; empty when nobody is known.
	Author string
	// Attribution is the signal that told the author: audit, admission, managed-fields, unknown.
	Attribution string
	// Operation is CREATE, UPDATE or DELETE when all changes agree, else BATCH; SEED when
	// the changes were found by comparing the cluster with the branch.
	Operation string
	// Changes are the changes in order.
	Changes []MessageChange
}

// MessageChange is one change of a Message.
type MessageChange struct {
	Operation v1alpha1.Operation
	Object
}

// operationBatch and operationSeed stand where several operations come together.
const (
	operationBatch = "BATCH"
	operationSeed  = "SEED"
)

// newMessage describes changes, at least one. seed says that a comparison found them.
func newMessage(destination types.NamespacedName, author Author, changes []Change, seed bool) Message {
	m := Message{
		Destination: destination.String(), Author: author.Name, Attribution: author.Signal,
		Operation: string(changes[0].Operation), Changes: make([]MessageChange, len(changes)),
	}
	if m.Attribution == "" {
		m.Attribution = "unknown"
	}
	for i, change := range changes {
		m.Changes[i] = MessageChange{Operation: change.Operation, Object: change.Object}
		if string(change.Operation) != m.Operation {
			m.Operation = operationBatch
		}
	}
	if seed {
		m.Operation = operationSeed
	}
	m.Subject = m.subject()
	return m
}

func (m Message) subject() string {
	if len(m.Changes) == 1 && m.Operation != operationSeed {
		return fmt.Sprintf("[%s] %s", m.Operation, m.Changes[0].Object)
	}
	if len(m.Changes) == 1 {
		return fmt.Sprintf("[%s] %s %s", m.Operation, m.Changes[0].Operation, m.Changes[0].Object)
	}
	count := map[v1alpha1.Operation]int{}
	for _, change := range m.Changes {
		count[change.Operation]++
	}
	var parts []string
	for _, part := range []struct {
		operation v1alpha1.Operation
		word      string
	}{{v1alpha1.OperationCreate, "created"}, {v1alpha1.OperationUpdate, "updated"}, {v1alpha1.OperationDelete, "deleted"}} {
		if n := count[part.operation]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.word))
		}
	}
	return fmt.Sprintf("[%s] %d objects: %s", m.Operation, len(m.Changes), strings.Join(parts, ", "))
}

// withoutTemplate is the subject and, for several changes, what they are.
func (m Message) withoutTemplate() string {
	if len(m.Changes) == 1 {
		return m.Subject
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", m.Subject)
	for _, change := range m.Changes[:min(len(m.Changes), listedChanges)] {
		fmt.Fprintf(&b, "%s %s\n", change.Operation, change.Object)
	}
	if more := len(m.Changes) - listedChanges; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	return b.String()
}

// text is the whole commit message: what the template says, or the default where there is
// no template or it fails, then the trailers, in a paragraph of their own as
// git interpret-trailers wants it.
func (m Message) text(custom *template.Template, trailers []string) string {
	text := strings.TrimSpace(m.withoutTemplate())
	if custom != nil {
		var b strings.Builder
		if err := custom.Execute(&b, m); err == nil && strings.TrimSpace(b.String()) != "" {
			text = strings.TrimSpace(b.String())
		}
	}
	return text + "\n\n" + strings.Join(trailers, "\n") + "\n"
}

// trailers say, readable by `git log --format=%(trailers)`, where a commit comes from.
func (id Identity) trailers(m Message, changes []Change) []string {
	trailers := []string{
		"X-ConfigButler-ClusterUID: " + id.ClusterUID,
		"X-ConfigButler-ControllerNS: " + id.Namespace,
		"X-ConfigButler-ControllerName: " + id.Name,
		"X-ConfigButler-InstanceID: " + id.Instance,
		"X-ConfigButler-Destination: " + m.Destination,
		"X-ConfigButler-Operation: " + m.Operation,
		"X-ConfigButler-Attribution: " + m.Attribution,
	}
	if len(changes) == 1 && changes[0].ResourceVersion != "" {
		trailers = append(trailers, "X-ConfigButler-ResourceVersion: "+changes[0].ResourceVersion)
	}
	if by := changes[0].Author.ImpersonatedBy; by != "" {
		trailers = append(trailers, "X-ConfigButler-ImpersonatedBy: "+by)
	}
	return trailers
}
