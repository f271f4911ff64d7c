// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// notifiedKind is a kind whose objects notifications of some events describe.
type notifiedKind struct {
	resource      string
	clusterScoped bool
	events        []v1alpha1.NotificationEvent
}

var (
	environmentEvents = []v1alpha1.NotificationEvent{
		v1alpha1.NotifyPrompted, v1alpha1.NotifyCompleted, v1alpha1.NotifyFailed, v1alpha1.NotifyConflicted, v1alpha1.NotifyDismissed,
	}
	changeEvents      = []v1alpha1.NotificationEvent{v1alpha1.NotifyChange, v1alpha1.NotifyBypass}
	destinationEvents = []v1alpha1.NotificationEvent{v1alpha1.NotifyDestinationFailing, v1alpha1.NotifyOwnershipConflict}

	// notifiedKinds are the kinds that the editor of a sink must be allowed to list.
	notifiedKinds = []notifiedKind{
		{resource: "environments", events: environmentEvents},
		{resource: "syncstatuses", events: environmentEvents},
		{resource: "changes", events: changeEvents},
		{resource: "gitdestinations", events: destinationEvents},
		{resource: "gitdestinationstatuses", events: destinationEvents},
		{resource: "appcatalogs", events: []v1alpha1.NotificationEvent{v1alpha1.NotifyCatalogFailing}},
		{resource: "syncpipelines", clusterScoped: true, events: []v1alpha1.NotificationEvent{v1alpha1.NotifyPipelineFailing}},
	}
)

// OfNotificationSink returns the permissions to list what the notifications of a sink describe, to read the Secrets of its receiver, and to
// create the Events that it records. serverNamespace is the namespace of the server: a sink in it sends notifications of the namespaces
// that it names, or of the whole cluster.
//
// Each Change also requires the permission to get the changed object, which depends on its type.
func OfNotificationSink(sink *v1alpha1.NotificationSink, serverNamespace string) []Permission {
	namespaces, remedy := []string{sink.Namespace}, ""
	inServer := sink.Namespace == serverNamespace
	if inServer {
		namespaces = notifiedNamespaces(sink.Spec.Namespaces)
		remedy = ", or name namespaces in which you may in spec.namespaces"
	}
	var permissions []Permission
	for _, kind := range notifiedKinds {
		events := chosenEvents(sink.Spec.Events, kind.events)
		if len(events) == 0 {
			continue
		}
		for _, namespace := range kind.namespaces(namespaces, inServer && len(sink.Spec.Namespaces) == 0) {
			permissions = append(permissions, Permission{
				Verbs: listVerbs, Namespace: namespace, Group: v1alpha1.GroupName, Resources: []string{kind.resource},
				Cause: onBehalf, Remedy: fmt.Sprintf("or leave %s out of spec.events", enumerated(events)) + remedy,
			})
		}
	}
	if changes := chosenEvents(sink.Spec.Events, changeEvents); len(changes) > 0 && sink.Spec.Content != v1alpha1.NotificationContentFields {
		for _, namespace := range namespaces {
			permissions = append(permissions, Permission{
				Verbs: []string{"get"}, Namespace: namespace, Group: v1alpha1.GroupName, Resources: []string{"changes/diff"},
				Cause: onBehalf, Remedy: "or let spec.content be Fields, which shows no values" + remedy,
			})
		}
	}
	return append(permissions, ofReceiver(sink, namespaces)...)
}

// notifiedNamespaces returns the namespaces of the subjects of a sink in the namespace of the server. The empty one is the whole cluster: a
// glob can match namespaces that do not exist yet.
func notifiedNamespaces(named []string) []string {
	isGlob := func(name string) bool { return strings.Contains(name, all) }
	if len(named) == 0 || slices.ContainsFunc(named, isGlob) {
		return []string{""}
	}
	return named
}

// namespaces returns where objects of the kind must be listed. Only a sink that names no namespaces sends notifications of what is
// cluster-scoped.
func (k notifiedKind) namespaces(namespaces []string, includesClusterScoped bool) []string {
	switch {
	case !k.clusterScoped:
		return namespaces
	case includesClusterScoped:
		return []string{""}
	}
	return nil
}

// chosenEvents returns the names of those events of a kind that a sink selects.
func chosenEvents(chosen, of []v1alpha1.NotificationEvent) []string {
	var names []string
	for _, event := range of {
		if slices.Contains(chosen, event) {
			names = append(names, string(event))
		}
	}
	return names
}

// ofReceiver returns the permissions for what the receiver of a sink uses. Events are created in the namespaces of their subjects.
func ofReceiver(sink *v1alpha1.NotificationSink, namespaces []string) []Permission {
	var permissions []Permission
	for _, secret := range receiverSecrets(&sink.Spec) {
		permissions = append(permissions, Permission{
			Verbs: []string{"get"}, Namespace: sink.Namespace, Resources: []string{"secrets"}, Name: secret.name,
			Cause: onBehalf, Remedy: fmt.Sprintf("or let spec.%s name a Secret that you may read", secret.field),
		})
	}
	if sink.Spec.Event == nil {
		return permissions
	}
	for _, namespace := range namespaces {
		permissions = append(permissions, Permission{
			Verbs: []string{"create"}, Namespace: namespace, Resources: []string{"events"},
			Cause: onBehalf, Remedy: "or let the sink have another receiver than spec.event",
		})
	}
	return permissions
}

// receiverSecret is a Secret of a receiver, and the field that names it.
type receiverSecret struct{ name, field string }

// receiverSecrets returns the Secrets of a receiver: that with its credentials, and that with its proxy.
func receiverSecrets(spec *v1alpha1.NotificationSinkSpec) []receiverSecret {
	var secrets []receiverSecret
	add := func(ref *v1alpha1.SecretReference, field string) {
		if ref != nil {
			secrets = append(secrets, receiverSecret{ref.Name, field})
		}
	}
	switch {
	case spec.Slack != nil:
		add(&spec.Slack.SecretRef, "slack.secretRef")
		add(spec.Slack.ProxySecretRef, "slack.proxySecretRef")
	case spec.Teams != nil:
		add(&spec.Teams.SecretRef, "teams.secretRef")
		add(spec.Teams.ProxySecretRef, "teams.proxySecretRef")
	case spec.Email != nil:
		add(spec.Email.SecretRef, "email.secretRef")
	case spec.Webhook != nil:
		add(spec.Webhook.SecretRef, "webhook.secretRef")
		add(spec.Webhook.ProxySecretRef, "webhook.proxySecretRef")
	}
	return secrets
}

// NotificationSendsNoMore reports whether a change of a sink sends nothing new, and sends nothing to more receivers. Every change of the
// spec counts except these: when something is sent; suspend being set; a higher minSeverity and less content; a narrower selection; and
// recipients of mail or the link being removed. A template counts: values that it puts into a link reach another server when a client
// shows a preview of the link.
func NotificationSendsNoMore(spec, before *v1alpha1.NotificationSinkSpec) bool {
	was := before.DeepCopy()
	was.DigestWindow, was.MaxPerMinute, was.Windows = spec.DigestWindow, spec.MaxPerMinute, spec.Windows
	if spec.Suspend {
		was.Suspend = true
	}
	if spec.LinkTemplate == "" {
		was.LinkTemplate = ""
	}
	if spec.Email != nil && was.Email != nil && sets.New(was.Email.To...).HasAll(spec.Email.To...) {
		was.Email.To = spec.Email.To
	}
	if severityRank(spec.MinSeverity) >= severityRank(was.MinSeverity) {
		was.MinSeverity = spec.MinSeverity
	}
	if contentRank(spec.Content) <= contentRank(was.Content) {
		was.Content = spec.Content
	}
	if selectsNoMore(spec, was) {
		was.Events, was.Namespaces, was.Resources = spec.Events, spec.Namespaces, spec.Resources
		was.Subjects, was.Authors = spec.Subjects, spec.Authors
	}
	return equality.Semantic.DeepEqual(spec, was)
}

// selectsNoMore reports whether every notification that is selected now was selected before.
func selectsNoMore(spec, was *v1alpha1.NotificationSinkSpec) bool {
	by, wasBy := spec.Authors, was.Authors
	return sets.New(was.Events...).HasAll(spec.Events...) &&
		namesNoMore(spec.Namespaces, was.Namespaces) &&
		choosesNoMore(choice{chosen: spec.Resources}, choice{chosen: was.Resources}) &&
		choosesNoMore(choice{chosen: by.Include, excluded: by.Exclude}, choice{chosen: wasBy.Include, excluded: wasBy.Exclude}) &&
		(was.Subjects == nil || equality.Semantic.DeepEqual(spec.Subjects, was.Subjects))
}

// namesNoMore reports whether all namespaces were named before. No names also mean what is cluster-scoped, which * does not.
func namesNoMore(named, before []string) bool {
	switch {
	case len(before) == 0:
		return true
	case len(named) == 0:
		return false
	}
	return slices.Contains(before, all) || sets.New(before...).HasAll(named...)
}

func severityRank(severity v1alpha1.NotificationSeverity) int {
	return slices.Index([]v1alpha1.NotificationSeverity{v1alpha1.SeverityInfo, v1alpha1.SeverityWarning, v1alpha1.SeverityError}, severity)
}

func contentRank(content v1alpha1.NotificationContent) int {
	return slices.Index([]v1alpha1.NotificationContent{
		v1alpha1.NotificationContentFields, v1alpha1.NotificationContentDiff, v1alpha1.NotificationContentFull,
	}, content)
}
