// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

type notificationSpec = *configbutler.NotificationSinkSpec

// allEvents are all kinds of notifications.
var allEvents = []configbutler.NotificationEvent{
	configbutler.NotifyPrompted, configbutler.NotifyCompleted, configbutler.NotifyFailed, configbutler.NotifyConflicted,
	configbutler.NotifyDismissed, configbutler.NotifyChange, configbutler.NotifyBypass, configbutler.NotifyDestinationFailing,
	configbutler.NotifyOwnershipConflict, configbutler.NotifyCatalogFailing, configbutler.NotifyPipelineFailing,
}

// notificationSink sends all events of shop to a webhook with a Secret.
func notificationSink(change ...func(notificationSpec)) *configbutler.NotificationSink {
	sink := &configbutler.NotificationSink{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chat"},
		Spec: configbutler.NotificationSinkSpec{
			Webhook: &configbutler.WebhookSink{URL: "https://hooks.example.com", SecretRef: &configbutler.SecretReference{Name: "hook"}},
			Events:  slices.Clone(allEvents), MinSeverity: configbutler.SeverityInfo, Content: configbutler.NotificationContentDiff,
		},
	}
	for _, apply := range change {
		apply(&sink.Spec)
	}
	return sink
}

// serverSink is such a sink in the namespace of the server.
func serverSink(change ...func(notificationSpec)) *configbutler.NotificationSink {
	sink := notificationSink(change...)
	sink.Namespace = "slipstream-system"
	return sink
}

func sends(events ...configbutler.NotificationEvent) func(notificationSpec) {
	return func(s notificationSpec) { s.Events = events }
}

func namespaces(names ...string) func(notificationSpec) {
	return func(s notificationSpec) { s.Namespaces = names }
}

func withoutSecret(s notificationSpec) { s.Webhook.SecretRef = nil }

func toEvents(s notificationSpec) { s.Webhook, s.Event = nil, &configbutler.EventSink{} }

// listed returns requests to list resources of this group in a namespace, or in the whole cluster. With Changes, the values are read, too.
func listed(namespace string, resources ...string) []string {
	var requests []string
	for _, resource := range resources {
		requests = append(requests, strings.TrimSuffix("list "+resource+".configbutler.ai "+namespace, " "))
	}
	if slices.Contains(resources, "changes") {
		requests = append(requests, strings.TrimSuffix("get changes/diff.configbutler.ai "+namespace, " "))
	}
	return requests
}

var (
	notified  = []string{"environments", "syncstatuses", "changes", "gitdestinations", "gitdestinationstatuses", "appcatalogs"}
	getsHook  = []string{"get secrets shop/hook"}
	getsProxy = []string{"get secrets shop/proxy"}
	proxied   = &configbutler.SecretReference{Name: "proxy"}
	// notifiesShop is what the sink requires.
	notifiesShop = slices.Concat(listed("shop", notified...), getsHook)
)

func TestWhatANotificationSinkRequires(t *testing.T) {
	const failed, change = configbutler.NotifyFailed, configbutler.NotifyChange
	secret := configbutler.SecretReference{Name: "hook"}
	tests := []struct {
		name string
		obj  *configbutler.NotificationSink
		asks []string
	}{
		{name: "all events of a namespace", obj: notificationSink(), asks: notifiesShop},
		{name: "while it is suspended", obj: notificationSink(func(s notificationSpec) { s.Suspend = true }), asks: notifiesShop},
		{name: "syncs", obj: notificationSink(sends(failed), withoutSecret), asks: listed("shop", "environments", "syncstatuses")},
		{name: "changes", obj: notificationSink(sends(change), withoutSecret), asks: listed("shop", "changes")},
		{
			name: "changes without values", asks: []string{"list changes.configbutler.ai shop"},
			obj: notificationSink(sends(change), withoutSecret, func(s notificationSpec) { s.Content = configbutler.NotificationContentFields }),
		},
		{
			name: "bypasses and catalogs", asks: listed("shop", "changes", "appcatalogs"),
			obj: notificationSink(sends(configbutler.NotifyCatalogFailing, configbutler.NotifyBypass), withoutSecret),
		},
		{
			name: "destinations", obj: notificationSink(sends(configbutler.NotifyOwnershipConflict), withoutSecret),
			asks: listed("shop", "gitdestinations", "gitdestinationstatuses"),
		},
		{name: "pipelines, of which a namespace has none", obj: notificationSink(sends(configbutler.NotifyPipelineFailing)), asks: getsHook},
		{
			name: "the Secret of Slack", asks: append(listed("shop", "changes"), getsHook...),
			obj: notificationSink(sends(change), func(s notificationSpec) {
				s.Webhook, s.Slack = nil, &configbutler.SlackSink{SecretRef: secret}
			}),
		},
		{
			name: "the Secrets of Slack and its proxy", asks: slices.Concat(listed("shop", "changes"), getsHook, getsProxy),
			obj: notificationSink(sends(change), func(s notificationSpec) {
				s.Webhook, s.Slack = nil, &configbutler.SlackSink{SecretRef: secret, ProxySecretRef: proxied}
			}),
		},
		{
			name: "the Secrets of Teams and its proxy", asks: slices.Concat(listed("shop", "changes"), getsHook, getsProxy),
			obj: notificationSink(sends(change), func(s notificationSpec) {
				s.Webhook, s.Teams = nil, &configbutler.TeamsSink{SecretRef: secret, ProxySecretRef: proxied}
			}),
		},
		{
			name: "only the Secret of a webhook's proxy", asks: append(listed("shop", "changes"), getsProxy...),
			obj: notificationSink(sends(change), withoutSecret, func(s notificationSpec) { s.Webhook.ProxySecretRef = proxied }),
		},
		{
			name: "the Secret of Teams", asks: append(listed("shop", "changes"), getsHook...),
			obj: notificationSink(sends(change), func(s notificationSpec) {
				s.Webhook, s.Teams = nil, &configbutler.TeamsSink{SecretRef: secret}
			}),
		},
		{
			name: "the Secret of a mail server", asks: append(listed("shop", "changes"), getsHook...),
			obj: notificationSink(sends(change), func(s notificationSpec) {
				s.Webhook, s.Email = nil, &configbutler.EmailSink{SecretRef: &secret}
			}),
		},
		{
			name: "a mail server without authentication", asks: listed("shop", "changes"),
			obj: notificationSink(sends(change), func(s notificationSpec) { s.Webhook, s.Email = nil, &configbutler.EmailSink{} }),
		},
		{name: "Events", obj: notificationSink(sends(change), toEvents), asks: append(listed("shop", "changes"), "create events shop")},
		{
			name: "everything of the cluster", obj: serverSink(),
			asks: slices.Concat(listed("", notified...), listed("", "syncpipelines"), []string{"get secrets slipstream-system/hook"}),
		},
		{
			name: "Events in the cluster", obj: serverSink(sends(failed), toEvents),
			asks: append(listed("", "environments", "syncstatuses"), "create events"),
		},
		{
			name: "two namespaces, which have no pipelines", asks: slices.Concat(listed("a", "appcatalogs"), listed("b", "appcatalogs")),
			obj: serverSink(sends(configbutler.NotifyCatalogFailing, configbutler.NotifyPipelineFailing), withoutSecret, namespaces("a", "b")),
		},
		{
			name: "Events in two namespaces", obj: serverSink(sends(change), toEvents, namespaces("a", "b")),
			asks: slices.Concat(listed("a", "changes"), listed("b", "changes"), []string{"create events a", "create events b"}),
		},
		{
			name: "a glob is the whole cluster", obj: serverSink(sends(change, configbutler.NotifyPipelineFailing), withoutSecret, namespaces("a", "team-*")),
			asks: listed("", "changes"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { asksFor(t, request(tt.obj, nil, admission.Create, ""), existing{}, tt.asks) })
	}
}

// TestWhatAChangeOfANotificationSinkRequires checks that a user who has a sink send more, or elsewhere, needs the permissions for all of it.
func TestWhatAChangeOfANotificationSinkRequires(t *testing.T) {
	webhook := func(change func(*configbutler.WebhookSink)) func(notificationSpec) {
		return func(s notificationSpec) { change(s.Webhook) }
	}
	email := func(to ...string) func(notificationSpec) {
		return func(s notificationSpec) {
			s.Webhook, s.Email = nil, &configbutler.EmailSink{SecretRef: &configbutler.SecretReference{Name: "hook"}, To: to}
		}
	}
	resources := func(names ...string) func(notificationSpec) { return func(s notificationSpec) { s.Resources = names } }
	include := func(names ...string) func(notificationSpec) {
		return func(s notificationSpec) { s.Authors.Include = names }
	}
	exclude := func(names ...string) func(notificationSpec) {
		return func(s notificationSpec) { s.Authors.Exclude = names }
	}
	labelled := func(s notificationSpec) { s.Subjects = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}} }
	severity := func(of configbutler.NotificationSeverity) func(notificationSpec) {
		return func(s notificationSpec) { s.MinSeverity = of }
	}
	content := func(of configbutler.NotificationContent) func(notificationSpec) {
		return func(s notificationSpec) { s.Content = of }
	}
	link := func(of string) func(notificationSpec) { return func(s notificationSpec) { s.LinkTemplate = of } }
	title := func(of string) func(notificationSpec) { return func(s notificationSpec) { s.Template.Title = of } }
	suspended := func(s notificationSpec) { s.Suspend = true }
	minute := &metav1.Duration{Duration: time.Minute}
	tests := []struct {
		name     string
		from, to func(notificationSpec)
		asks     []string
	}{
		{name: "another URL", to: webhook(func(w *configbutler.WebhookSink) { w.URL = "https://mine.example.com" }), asks: notifiesShop},
		{
			name: "another URL while it is suspended", from: suspended, asks: notifiesShop,
			to: func(s notificationSpec) { s.Suspend, s.Webhook.URL = true, "https://mine.example.com" },
		},
		{name: "another authority", to: webhook(func(w *configbutler.WebhookSink) { w.CABundle = []byte("mine") }), asks: notifiesShop},
		{
			name: "another Secret", to: webhook(func(w *configbutler.WebhookSink) { w.SecretRef.Name = "root" }),
			asks: append(listed("shop", notified...), "get secrets shop/root"),
		},
		{
			name: "a proxy", to: webhook(func(w *configbutler.WebhookSink) { w.ProxySecretRef = proxied }),
			asks: append(slices.Clone(notifiesShop), getsProxy...),
		},
		{name: "another receiver", to: email("jane@example.com"), asks: notifiesShop},
		{name: "a recipient more", from: email("jane@example.com"), to: email("jane@example.com", "mallory@example.com"), asks: notifiesShop},
		{
			name: "an event more", from: sends(configbutler.NotifyFailed), to: sends(configbutler.NotifyFailed, configbutler.NotifyChange),
			asks: slices.Concat(listed("shop", "environments", "syncstatuses", "changes"), getsHook),
		},
		{name: "the end of a suspension", from: suspended, asks: notifiesShop},
		{name: "a lower severity", from: severity(configbutler.SeverityWarning), asks: notifiesShop},
		{name: "more content", to: content(configbutler.NotificationContentFull), asks: notifiesShop},
		{name: "all resources", from: resources("configmaps"), asks: notifiesShop},
		{name: "another resource", from: resources("configmaps"), to: resources("secrets"), asks: notifiesShop},
		{name: "all authors", from: include("jane"), asks: notifiesShop},
		{name: "an author more", from: include("jane"), to: include("jane", "bob"), asks: notifiesShop},
		{name: "an author who was excluded", from: exclude("jane"), asks: notifiesShop},
		{name: "all labels", from: labelled, asks: notifiesShop},
		{name: "a link", to: link("https://mine.example.com/{name}"), asks: notifiesShop},
		{name: "another link", from: link("https://page.example.com"), to: link("https://mine.example.com"), asks: notifiesShop},
		{name: "a template", to: title("x"), asks: notifiesShop},
		{name: "no template", from: title("x"), asks: notifiesShop},

		{name: "a suspension", to: suspended},
		{name: "a recipient less", from: email("jane@example.com", "bob@example.com"), to: email("bob@example.com")},
		{name: "an event less", to: sends(allEvents[1:]...)},
		{name: "a higher severity", to: severity(configbutler.SeverityError)},
		{name: "less content", to: content(configbutler.NotificationContentFields)},
		{name: "some resources", to: resources("configmaps")},
		{name: "some of all resources", from: resources("*"), to: resources("configmaps")},
		{name: "some authors", to: include("jane")},
		{name: "an author excluded", to: exclude("jane")},
		{name: "some labels", to: labelled},
		{name: "no link", from: link("https://page.example.com")},
		{name: "when and how often", to: func(s notificationSpec) {
			s.DigestWindow, s.MaxPerMinute, s.Windows = minute, ptr.To[int32](1), []configbutler.SyncWindow{{Name: "nights"}}
		}},
		{name: "nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			versions := []*configbutler.NotificationSink{notificationSink(), notificationSink()}
			for i, change := range []func(notificationSpec){tt.from, tt.to} {
				if change != nil {
					change(&versions[i].Spec)
				}
			}
			versions[1].Labels = map[string]string{"a": "b"}
			asksFor(t, request(versions[1], versions[0], admission.Update, ""), existing{}, tt.asks)
		})
	}
}

func TestWhatOtherNamespacesOfANotificationSinkRequire(t *testing.T) {
	tests := []struct {
		name     string
		from, to []string
		asks     []string
	}{
		{name: "a namespace more", from: []string{"a"}, to: []string{"a", "b"}, asks: slices.Concat(listed("a", "changes"), listed("b", "changes"))},
		{name: "all namespaces", from: []string{"a"}, to: []string{"*"}, asks: listed("", "changes")},
		{name: "what is cluster-scoped", from: []string{"*"}, asks: listed("", "changes")},
		{name: "a namespace less", from: []string{"a", "b"}, to: []string{"b"}},
		{name: "one of all", from: []string{"*"}, to: []string{"b"}},
		{name: "some of everything", to: []string{"b-*"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			changes := sends(configbutler.NotifyChange)
			old, obj := serverSink(changes, withoutSecret, namespaces(tt.from...)), serverSink(changes, withoutSecret, namespaces(tt.to...))
			asksFor(t, request(obj, old, admission.Update, ""), existing{}, tt.asks)
		})
	}
}

// TestRequestsAboutANotificationSink checks that a test of a sink requires the permissions for the sink as it is stored, because the server
// sends with the Secret of the sink.
func TestRequestsAboutANotificationSink(t *testing.T) {
	as := func(subresource string, dryRun bool) admission.Attributes {
		return admission.NewAttributesRecord(&configbutler.NotificationTest{}, nil, configbutler.SchemeGroupVersion.WithKind("NotificationTest"),
			"shop", "chat", configbutler.SchemeGroupVersion.WithResource("notificationsinks"),
			subresource, admission.Create, nil, dryRun, &user.DefaultInfo{Name: "jane"})
	}
	stored := existing{sinks: []configbutler.NotificationSink{*notificationSink()}}
	asksFor(t, as("test", false), stored, notifiesShop)
	asksFor(t, as("test", true), stored, notifiesShop)
	asksFor(t, as("test", false), existing{}, nil) // executing the request returns NotFound
	asksFor(t, as("status", false), stored, nil)
	stored.fails = "sink"
	err := pluginAmong(t, &rbac{allowed: notifiesShop}, cluster(), stored).Validate(t.Context(), as("test", false), nil)
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("without the sink: %v, want ServiceUnavailable", err)
	}
}

func TestRefusalOfANotificationSinkNamesThePermissionAndTheRemedy(t *testing.T) {
	const behalf = ", which the server would do on their behalf: "
	tests := []struct {
		name string
		obj  *configbutler.NotificationSink
		want string
	}{
		{
			"a kind", notificationSink(sends(configbutler.NotifyFailed, configbutler.NotifyPrompted), withoutSecret),
			`cannot list environments.configbutler.ai in the namespace shop` + behalf +
				`ask for a Role in the namespace shop that allows list on resource "environments" in API group "configbutler.ai", ` +
				`or leave Prompted and Failed out of spec.events`,
		},
		{
			"a kind in the cluster", serverSink(sends(configbutler.NotifyChange), withoutSecret),
			`cannot list changes.configbutler.ai in the whole cluster` + behalf +
				`ask for a ClusterRole that allows list on resource "changes" in API group "configbutler.ai", ` +
				`or leave Change out of spec.events, or name namespaces in which you may in spec.namespaces`,
		},
		{
			"a Secret", notificationSink(sends(configbutler.NotifyPipelineFailing)),
			`cannot get secrets "hook" in the namespace shop` + behalf +
				`ask for a Role in the namespace shop that allows get on resource "secrets" in API group "", ` +
				`or let spec.webhook.secretRef name a Secret that you may read`,
		},
		{
			"Events", notificationSink(sends(configbutler.NotifyPipelineFailing), toEvents),
			`cannot create events in the namespace shop` + behalf +
				`ask for a Role in the namespace shop that allows create on resource "events" in API group "", ` +
				`or let the sink have another receiver than spec.event`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := plugin(t, &rbac{}, cluster()).Validate(t.Context(), request(tt.obj, nil, admission.Create, ""), nil)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `is forbidden: user "jane" `+tt.want+"\n") {
				t.Errorf("refusal = %v\nwant it to begin with %s", err, tt.want)
			}
		})
	}
}
