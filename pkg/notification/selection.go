// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncwindow"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/notification/observe"
)

// selection selects the notifications of a sink, and when they are sent.
type selection struct {
	spec       v1alpha1.NotificationSinkSpec
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
	s := &selection{spec: spec, events: sets.New(spec.Events...), subjects: labels.Everything()}
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

func windowsOf(windows []v1alpha1.SyncWindow) []syncwindow.Window {
	out := make([]syncwindow.Window, len(windows))
	for i, w := range windows {
		out[i] = syncwindow.Window{
			Name: w.Name, Kind: syncwindow.Kind(w.Kind), Schedule: w.Schedule, Duration: w.Duration.Duration, TimeZone: w.TimeZone,
		}
	}
	return out
}

// globs returns a function that reports whether one of the patterns matches a text. In a pattern, * matches any characters.
func globs(patterns []string) func(string) bool {
	if len(patterns) == 0 {
		return func(string) bool { return false }
	}
	quoted := make([]string, len(patterns))
	for i, pattern := range patterns {
		quoted[i] = strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	}
	return regexp.MustCompile(`(?s)^(?:` + strings.Join(quoted, "|") + `)$`).MatchString
}

// selects reports whether the sink is notified of a finding about a subject with labels.
func (s *selection) selects(finding *observe.Finding, of labels.Set) bool {
	n := &finding.Notification
	return s.events.Has(n.Event) && message.Rank(n.Severity) >= message.Rank(s.spec.MinSeverity) &&
		s.namespaces(n.Subject.Namespace) && s.subjects.Matches(of)
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
