// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Change returns the notification of a Change.
func Change(change *v1alpha1.Change) message.Notification {
	spec := &change.Spec
	n := message.Notification{
		Event: v1alpha1.NotifyChange, Time: spec.Time.Time, Severity: v1alpha1.SeverityInfo, Subject: ObjectOf(spec),
		Reason: sentence(spec.Reason), ManagedBy: managerOf(spec.ManagedBy),
		Command:   command(change.Namespace, "show %s", change.Name),
		DedupeKey: KeyOf(string(change.UID), v1alpha1.NotifyChange),
	}
	if spec.Bypass {
		n.Event, n.Severity = v1alpha1.NotifyBypass, v1alpha1.SeverityWarning
		n.DedupeKey = KeyOf(string(change.UID), v1alpha1.NotifyBypass)
	}
	if author := AuthorOf(spec); author.Name != "" {
		n.ChangedBy = []message.Author{author}
	}
	for _, commit := range first(spec.Commits) {
		n.Commits = append(n.Commits, message.Commit{SHA: commit.SHA, URL: commit.URL})
	}
	for i, path := range spec.Fields {
		if i == message.MaxFields {
			n.MoreFields = len(spec.Fields) - i
			break
		}
		n.Fields = append(n.Fields, message.Field{Path: path})
	}
	n.MoreFields += int(spec.MoreFields)
	n.Headline = changed(spec, n)
	return n
}

// ObjectOf returns the changed object as subject. An object that was deleted unseen has the plural of its type as kind.
func ObjectOf(spec *v1alpha1.ChangeSpec) message.Subject {
	return message.Subject{
		Kind: cmp.Or(spec.Object.Kind, spec.Object.Resource), APIVersion: spec.Object.APIVersion, Namespace: spec.Object.Namespace, Name: spec.Object.Name,
		UID: string(spec.Object.UID),
	}
}

// AuthorOf returns who made a change: a user, or the field manager.
func AuthorOf(spec *v1alpha1.ChangeSpec) message.Author {
	if spec.Author != nil {
		return message.Author{Name: spec.Author.Username, Signal: spec.Author.Signal}
	}
	if spec.FieldManager != "" {
		return message.Author{Name: spec.FieldManager, Signal: string(v1alpha1.SignalManagedFields)}
	}
	return message.Author{}
}

// changed returns text such as: Deployment shop/web: updated by jane@example.com, bypassing Helm shop/web.
func changed(spec *v1alpha1.ChangeSpec, n message.Notification) string {
	text := map[v1alpha1.ChangeOperation]string{
		v1alpha1.ChangeCreate: "Created", v1alpha1.ChangeUpdate: "Updated", v1alpha1.ChangeDelete: "Deleted",
	}[spec.Operation]
	if spec.Operation == v1alpha1.ChangeCompared {
		text = compared(spec.Commits)
	}
	if len(n.ChangedBy) > 0 {
		text += " by " + n.ChangedBy[0].Name
	}
	if spec.Bypass && n.ManagedBy != "" {
		text += ", bypassing " + n.ManagedBy
	}
	return summary.Cut(Headline(n.Subject, text), message.MaxText)
}

// compared returns what a comparison of the cluster with Git has found.
func compared(commits []v1alpha1.ChangeCommit) string {
	switch {
	case len(commits) == 0:
	case commits[0].BlobAfter == "":
		return "Found deleted"
	case commits[0].BlobBefore == "":
		return "Found new"
	}
	return "Found changed"
}

// managerOf returns text such as: Flux Kustomization flux-system/apps.
func managerOf(manager *v1alpha1.ChangeManager) string {
	if manager == nil {
		return ""
	}
	name := manager.Name
	if manager.Namespace != "" {
		name = manager.Namespace + "/" + name
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", manager.Tool, manager.Kind, name)), " ")
}
