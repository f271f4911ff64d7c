// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// maxDiffs is the number of Changes of a message whose values are read from Git, and diffTimeout bounds that for all of them. The others, and
	// those that cannot be read in that time, show the paths of the fields only.
	maxDiffs    = 10
	diffTimeout = 15 * time.Second
)

// version is a generation of a sink's spec: how messages are made, and where they are sent.
type version struct {
	sinks     *sinks
	sink      *v1alpha1.NotificationSink
	selection *selection
	receiver  delivery.Receiver
}

// compose returns the message, with only what the user on whose behalf it is sent may read now. It is nil if nothing is left.
func (c *version) compose(ctx context.Context, sending *ledger.Sending) (*message.Message, error) {
	m := &message.Message{ID: sending.ID, Time: sending.Time, Cluster: c.sinks.config.Cluster}
	left := sending.Clone()
	if sending.Scope != c.selection.scope {
		left.Keep(c.selection.stillSelects)
	}
	listed, hidden := left.Listed, false
	for _, entry := range listed {
		visible, err := c.visible(ctx, &entry)
		if err != nil {
			return nil, err
		}
		if !visible {
			hidden = true
			continue
		}
		if err := c.withholdAuthors(ctx, &entry); err != nil {
			return nil, err
		}
		n := entry.Notification
		n.Cluster, n.Link = m.Cluster, linkOf(c.selection.spec.LinkTemplate, n.Subject)
		m.Notifications = append(m.Notifications, n)
	}
	m.Counts = left.Counts
	if hidden { // The user might not see the others either that are only counted.
		m.Counts = message.CountsOf(m.Notifications)
	}
	if len(m.Notifications) == 0 {
		return nil, nil
	}
	c.addValues(ctx, m, listed)
	m.Thread = threadOf(m)
	c.selection.template.Apply(m)
	return m, nil
}

// visible reports whether an entry is sent: the user may see it, and the SyncPolicy does not suspend it. What is not a Change is covered by the
// permissions without which the sink sends nothing.
func (c *version) visible(ctx context.Context, entry *ledger.Entry) (bool, error) {
	if entry.Change == nil {
		return entry.Notification.Event != v1alpha1.NotifyPrompted || !c.sinks.policy().Suspend.CatalogNotices, nil
	}
	return c.sinks.maySee(ctx, c.sink, entry.Change.Group, entry.Change.Resource, entry.Notification.Subject.Namespace)
}

// withholdAuthors removes the authors and commits that the user may not read where they come from.
func (c *version) withholdAuthors(ctx context.Context, entry *ledger.Entry) error {
	if entry.SourceNamespace == "" {
		return nil
	}
	may, err := c.sinks.may(ctx, c.sink, access.Permission{
		Verbs: []string{"list"}, Namespace: entry.SourceNamespace, Group: v1alpha1.GroupName, Resources: []string{"syncstatuses"},
	})
	if err != nil {
		return err
	}
	if !may {
		entry.Notification.ChangedBy, entry.Notification.Commits = nil, nil
	}
	return nil
}

// addValues adds the values of changed fields to the Changes of a message.
func (c *version) addValues(ctx context.Context, m *message.Message, listed []ledger.Entry) {
	if c.selection.spec.Content == v1alpha1.NotificationContentFields || c.sinks.config.Diff == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	read := 0
	for i := range m.Notifications {
		n := &m.Notifications[i]
		at := slices.IndexFunc(listed, func(e ledger.Entry) bool { return e.Notification.ID == n.ID })
		if at < 0 || listed[at].Change == nil || len(n.Fields) == 0 || read == maxDiffs {
			continue
		}
		read++
		fields, err := c.valuesOf(ctx, listed[at].Change)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Values are not shown in a notification", "change", klog.KRef(n.Subject.Namespace, n.Subject.Name),
				"cause", err.Error())
			continue
		}
		n.MoreFields = max(0, len(fields)-message.MaxFields)
		n.Fields = fields[:min(len(fields), message.MaxFields)]
	}
}

// valuesOf returns the changed fields of a Change with their values, as far as they are shown.
func (c *version) valuesOf(ctx context.Context, reference *ledger.ChangeReference) ([]message.Field, error) {
	change, err := c.sinks.shared.Client.ConfigbutlerV1alpha1().Changes(reference.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the Change has expired: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Change: %w", err)
	}
	diff, err := c.sinks.config.Diff(ctx, change)
	if err != nil {
		return nil, fmt.Errorf("read its contents: %w", err)
	}
	hidden := isHidden(change.Spec.Object, c.selection.spec.Content)
	fields := make([]message.Field, 0, len(diff.Fields))
	for _, difference := range diff.Fields {
		fields = append(fields, fieldOf(difference, hidden))
	}
	return fields, nil
}

// isHidden reports whether the values of an object are not shown: those of Secrets never are, and those of ConfigMaps only with Full.
func isHidden(object v1alpha1.ChangedObject, content v1alpha1.NotificationContent) bool {
	of := typeOf(&object)
	if of.Group != "" {
		return false
	}
	return of.Resource == "secrets" || of.Resource == "configmaps" && content != v1alpha1.NotificationContentFull
}

// fieldOf returns a changed field with bounded values.
func fieldOf(difference v1alpha1.FieldDifference, hidden bool) message.Field {
	field := message.Field{Path: difference.Field, Type: string(difference.ChangeType), Hidden: hidden || difference.Hidden}
	if field.Hidden {
		return field
	}
	bounded := func(value *string) *string {
		if value == nil {
			return nil
		}
		cut := summary.Cut(*value, message.MaxValue)
		return &cut
	}
	field.Before, field.After = bounded(difference.Before), bounded(difference.After)
	return field
}

// threadOf returns what identifies the subject of a message; empty if it has several.
func threadOf(m *message.Message) string {
	key := func(s message.Subject) string {
		return strings.Join([]string{s.APIVersion, s.Kind, s.Namespace, s.Name}, "/")
	}
	if len(m.Notifications) < m.Total() {
		return "" // There are others that are only counted.
	}
	thread := key(m.Notifications[0].Subject)
	for i := range m.Notifications {
		if key(m.Notifications[i].Subject) != thread {
			return ""
		}
	}
	return thread
}

// linkOf returns the URL of a subject according to a template.
func linkOf(template string, subject message.Subject) string {
	base, query, hasQuery := strings.Cut(template, "?")
	link := expand(base, subject, url.PathEscape)
	if hasQuery {
		link += "?" + expand(query, subject, url.QueryEscape)
	}
	return link
}

// expand replaces the placeholders of a template by the escaped parts of a subject.
func expand(template string, subject message.Subject, escape func(string) string) string {
	return strings.NewReplacer(
		"{kind}", escape(strings.ToLower(subject.Kind)), "{namespace}", escape(subject.Namespace), "{name}", escape(subject.Name),
	).Replace(template)
}
