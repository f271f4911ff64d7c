// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncwindow"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/notification/observe"
)

// selection selects the notifications of a sink, and when they are sent.
type selection struct {
	spec v1alpha1.NotificationSinkSpec
	// scope identifies what is sent, to whom, and on whose behalf; created is when the sink was.
	scope      string
	created    time.Time
	events     sets.Set[v1alpha1.NotificationEvent]
	namespaces func(string) bool
	subjects   labels.Selector
	included   func(string) bool
	excluded   func(string) bool
	windows    syncwindow.Windows
	template   *message.Template
}

// newSelection compiles the spec of a sink. server is the namespace of the server.
func newSelection(sink *v1alpha1.NotificationSink, server string) (*selection, error) {
	spec := sink.Spec
	s := &selection{spec: spec, scope: scopeOf(sink), created: sink.CreationTimestamp.Time, events: sets.New(spec.Events...), subjects: labels.Everything()}
	switch {
	case sink.Namespace != server:
		s.namespaces = func(namespace string) bool { return namespace == sink.Namespace }
	case len(spec.Namespaces) == 0:
		s.namespaces = func(string) bool { return true }
	default: // What is cluster-scoped is in none of the namespaces, also if a pattern is *.
		matches := globs(spec.Namespaces)
		s.namespaces = func(namespace string) bool { return namespace != "" && matches(namespace) }
	}
	s.included, s.excluded = func(string) bool { return true }, globs(spec.Authors.Exclude)
	if len(spec.Authors.Include) > 0 {
		s.included = globs(spec.Authors.Include)
	}
	var err error
	if spec.Subjects != nil {
		if s.subjects, err = metav1.LabelSelectorAsSelector(spec.Subjects); err != nil {
			return nil, fmt.Errorf("read subjects: %w", err)
		}
	}
	var problems field.ErrorList
	if s.windows, problems = syncwindow.Compile(windowsOf(spec.Windows), field.NewPath("spec", "windows")); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	if s.template, err = message.ParseTemplate(spec.Template.Title, spec.Template.Text); err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	return s, nil
}

// scopeOf returns a hash of the user on whose behalf a sink sends, and of its spec without what only says when and how messages are sent.
func scopeOf(sink *v1alpha1.NotificationSink) string {
	spec := sink.Spec.DeepCopy()
	spec.DigestWindow, spec.MaxPerMinute, spec.Windows, spec.Suspend = nil, nil, nil, false
	spec.Template, spec.LinkTemplate, spec.Content = v1alpha1.NotificationTemplate{}, "", ""
	text, err := json.Marshal([]any{spec, sink.Status.EditedBy})
	if err != nil {
		return "" // Specs come from JSON.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

func windowsOf(windows []v1alpha1.SyncWindow) []syncwindow.Window {
	out := make([]syncwindow.Window, len(windows))
	for i, w := range windows {
		out[i] = syncwindow.Window{
			Name: w.Name, Kind: syncwindow.Kind(w.Kind), Schedule: w.Schedule, Duration: w.Duration.Duration, TimeZone: w.TimeZone,
		}
	}
	return out
}

// globs returns a function that reports whether one of the patterns matches a text.
func globs(patterns []string) func(string) bool {
	return func(text string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool { return matchesGlob(pattern, text) })
	}
}

// matchesGlob reports whether a pattern matches a text. In a pattern, * matches any characters. The work is linear in the length of the text.
func matchesGlob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], len(parts)-1
	if last == 0 {
		return text == pattern
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, part := range parts[1:last] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, parts[last])
}

// selects reports whether the sink is notified of a finding about a subject with labels.
func (s *selection) selects(finding *observe.Finding, of labels.Set) bool {
	n := &finding.Notification
	return s.events.Has(n.Event) && message.Rank(n.Severity) >= message.Rank(s.spec.MinSeverity) &&
		s.namespaces(n.Subject.Namespace) && s.subjects.Matches(of)
}

// stillSelects reports whether a notification that was collected by an earlier spec may be sent by this one. Labels are not looked at again.
func (s *selection) stillSelects(entry *ledger.Entry) bool {
	n := &entry.Notification
	if !s.namespaces(n.Subject.Namespace) || !n.Recovered && message.Rank(n.Severity) < message.Rank(s.spec.MinSeverity) {
		return false
	}
	if entry.Change == nil {
		return s.events.Has(n.Event)
	}
	author := ""
	if len(n.ChangedBy) > 0 {
		author = n.ChangedBy[0].Name
	}
	of := schema.GroupResource{Group: entry.Change.Group, Resource: entry.Change.Resource}
	return s.wants(n) && s.selectsType(of) && s.included(author) && !s.excluded(author)
}

// selectsKind reports whether objects of an observed kind can have something that the sink is notified of.
func (s *selection) selectsKind(kind string) bool {
	switch kind {
	case kindCatalog:
		return s.events.Has(v1alpha1.NotifyCatalogFailing)
	case kindDestination:
		return s.events.HasAny(v1alpha1.NotifyDestinationFailing, v1alpha1.NotifyOwnershipConflict)
	case kindPipeline:
		return s.events.Has(v1alpha1.NotifyPipelineFailing)
	}
	return s.events.HasAny(v1alpha1.NotifyPrompted, v1alpha1.NotifyCompleted, v1alpha1.NotifyFailed, v1alpha1.NotifyConflicted,
		v1alpha1.NotifyDismissed)
}

// followsChanges reports whether the sink is notified of Changes.
func (s *selection) followsChanges() bool {
	return s.events.HasAny(v1alpha1.NotifyChange, v1alpha1.NotifyBypass)
}

// selectsChange reports whether the sink is notified of a Change that destinations with the given labels mirror.
func (s *selection) selectsChange(change *v1alpha1.Change, n *message.Notification, destinations []labels.Set) bool {
	object := &change.Spec.Object
	author := observe.AuthorOf(&change.Spec).Name
	return s.wants(n) && s.namespaces(object.Namespace) && s.selectsType(typeOf(object)) &&
		s.included(author) && !s.excluded(author) && (s.subjects.Empty() || slices.ContainsFunc(destinations, s.matches))
}

// wants reports whether the event and the severity of a Change are selected. A bypass is a Change, too.
func (s *selection) wants(n *message.Notification) bool {
	selected := s.events.Has(n.Event) || n.Event == v1alpha1.NotifyBypass && s.events.Has(v1alpha1.NotifyChange)
	return selected && message.Rank(n.Severity) >= message.Rank(s.spec.MinSeverity)
}

func (s *selection) matches(of labels.Set) bool { return s.subjects.Matches(of) }

// selectsType reports whether objects of a type are selected.
func (s *selection) selectsType(of schema.GroupResource) bool {
	chosen := s.spec.Resources
	return len(chosen) == 0 || slices.Contains(chosen, "*") || slices.Contains(chosen, of.Resource) || slices.Contains(chosen, of.String())
}

// typeOf returns the type of a changed object.
func typeOf(object *v1alpha1.ChangedObject) schema.GroupResource {
	version, err := schema.ParseGroupVersion(object.APIVersion)
	if err != nil {
		return schema.GroupResource{Resource: object.Resource} // The server wrote it; no permission covers the type.
	}
	return version.WithResource(object.Resource).GroupResource()
}
