// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Finding is something of which sinks may be notified.
type Finding struct {
	// Lasting means that it is found as long as it lasts: until then, sinks repeat the notification as a reminder.
	Lasting bool
	// Notification is complete but for what depends on the sink: the ID, the sequence, the link, and the number of the reminder. Its DedupeKey
	// identifies the finding.
	Notification message.Notification
	// SourceNamespace is where the authors and commits in the notification come from. Empty if that is the namespace of the subject.
	SourceNamespace string
}

// Findings are what is found in an object.
type Findings struct {
	Found []Finding
	// Unknown are prefixes of the keys of lasting findings of which it is not known whether they last.
	Unknown []string
	// State is the sentence that describes the object now.
	State string
	// Deleted means that the object does not exist any more.
	Deleted bool
}

// add adds a finding about a subject.
func (f *Findings) add(lasting bool, n message.Notification) {
	f.Found = append(f.Found, Finding{Lasting: lasting, Notification: n})
}

// KeyOf returns the key of what is found in an object with a uid. parts distinguish its findings.
func KeyOf(uid string, event v1alpha1.NotificationEvent, parts ...string) string {
	return strings.Join(append([]string{uid, string(event)}, parts...), "/")
}

// subjectOf returns an object of this API as subject.
func subjectOf(kind string, meta *metav1.ObjectMeta) message.Subject {
	return message.Subject{
		Kind: kind, APIVersion: v1alpha1.SchemeGroupVersion.String(), Namespace: meta.Namespace, Name: meta.Name, UID: string(meta.UID),
	}
}

// Headline returns text such as: Environment teams/alice: 3 workloads changed.
func Headline(subject message.Subject, sentence string) string {
	return summary.With(subject.Kind+" "+nameOf(subject), sentence)
}

// EndOf returns a sentence that says that a finding has ended. state describes the object now.
func EndOf(event v1alpha1.NotificationEvent, state string) string {
	ended := map[v1alpha1.NotificationEvent]string{
		v1alpha1.NotifyFailed: "No longer fails", v1alpha1.NotifyConflicted: "No longer in conflict",
		v1alpha1.NotifyDestinationFailing: "Writes again", v1alpha1.NotifyOwnershipConflict: "Owns its folder again",
		v1alpha1.NotifyCatalogFailing: "Follows its source again", v1alpha1.NotifyPipelineFailing: "Delivers again",
	}[event]
	if state == "" {
		return ended
	}
	return ended + " (" + state + ")"
}

func nameOf(subject message.Subject) string {
	if subject.Namespace == "" {
		return subject.Name
	}
	return subject.Namespace + "/" + subject.Name
}

// sentence returns a text as one bounded line.
func sentence(text string) string { return summary.Cut(summary.Line(text), message.MaxText) }

// command returns a command of the plugin for an object in a namespace.
func command(namespace, format string, args ...any) string {
	text := "kubectl slipstream " + fmt.Sprintf(format, args...)
	if namespace != "" {
		text += " -n " + namespace
	}
	return text
}

// timeOf returns a time of the API; otherwise if it is absent.
func timeOf(at *metav1.Time, otherwise time.Time) time.Time {
	if at.IsZero() {
		return otherwise
	}
	return at.Time
}
