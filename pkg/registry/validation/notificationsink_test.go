// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

type notifier = *configbutler.NotificationSink

// sinkOf returns a sink of team-a with a receiver and defaults.
func sinkOf(spec v1alpha1.NotificationSinkSpec) notifier {
	external := &v1alpha1.NotificationSink{ObjectMeta: meta("chat"), Spec: spec}
	v1alpha1.SetObjectDefaults_NotificationSink(external)
	sink := &configbutler.NotificationSink{}
	if err := v1alpha1.Convert_v1alpha1_NotificationSink_To_configbutler_NotificationSink(external, sink, nil); err != nil {
		panic(err)
	}
	return sink
}

func notificationSink() notifier {
	return sinkOf(v1alpha1.NotificationSinkSpec{Slack: &v1alpha1.SlackSink{
		SecretRef: v1alpha1.SecretReference{Name: "slack"}, Channel: "deploys",
	}})
}

func mailSink() notifier {
	return sinkOf(v1alpha1.NotificationSinkSpec{Email: &v1alpha1.EmailSink{
		Host: "smtp.example.com", From: "Slipstream <slipstream@example.com>", To: []string{"jane@example.com"},
		SecretRef: &v1alpha1.SecretReference{Name: "smtp"},
	}})
}

func webhookSink() notifier {
	return sinkOf(v1alpha1.NotificationSinkSpec{Webhook: &v1alpha1.WebhookSink{URL: "https://hooks.example.com/in?team=a"}})
}

// serverSink returns a sink in the namespace of the server.
func serverSink() notifier {
	sink := notificationSink()
	sink.Namespace = "slipstream-system"
	return sink
}

// checkSinks applies each change to a fresh sink.
func checkSinks(t *testing.T, valid func() notifier, changes []change[notifier]) {
	t.Helper()
	options := validation.Options{ServerNamespace: "slipstream-system"}
	create := func(s notifier) field.ErrorList { return validation.ValidateNotificationSink(s, options) }
	update := func(s, old notifier) field.ErrorList {
		return validation.ValidateNotificationSinkUpdate(s, old, options)
	}
	checkChanges(t, valid, create, update, changes)
}

func TestNotificationSinkName(t *testing.T) {
	for name, says := range map[string]string{strings.Repeat("a", 64): "no more than 63", "a.b": "must not contain dots"} {
		sink := with(notificationSink(), func(s notifier) { s.Name = name })
		change[notifier]{path: "metadata.name", says: says}.check(t, validation.ValidateNotificationSink(sink, validation.Options{}))
	}
	sink := with(notificationSink(), func(s notifier) { s.Namespace = "" })
	change[notifier]{path: "metadata.namespace", says: "Required"}.check(t, validation.ValidateNotificationSink(sink, validation.Options{}))
}

func TestNotificationSelection(t *testing.T) {
	checkSinks(t, notificationSink, []change[notifier]{
		{name: "suspended", do: func(s notifier) { s.Spec.Suspend = true }},
		{name: "no events", do: func(s notifier) { s.Spec.Events = nil }, path: "spec.events", says: "at least one kind of notifications"},
		{name: "an unknown event", do: func(s notifier) { s.Spec.Events[1] = "Synced" }, path: "spec.events[1]", says: `"Prompted", "Completed"`},
		{
			name: "an event twice", do: func(s notifier) { s.Spec.Events[1] = s.Spec.Events[0] },
			path: "spec.events[1]", says: "Duplicate",
		},
		{
			name: "namespaces of others", do: func(s notifier) { s.Spec.Namespaces = []string{"team-a"} },
			path: "spec.namespaces", says: "the namespace of the server, slipstream-system",
		},
		{name: "a selector", do: func(s notifier) { s.Spec.Subjects = selector("team", "a") }},
		{
			name: "a selector of no label", do: func(s notifier) { s.Spec.Subjects = selector("no label", "a") },
			path: "spec.subjects.matchLabels", says: "no label",
		},
		{
			name: "a selector that is too large", do: func(s notifier) {
				s.Spec.Subjects = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: numbered("v", 500)},
				}}
			},
			path: "spec.subjects", says: "at most 500",
		},
		{name: "resources", do: func(s notifier) { s.Spec.Resources = []string{"deployments", "deployments.apps"} }},
		{name: "all resources", do: func(s notifier) { s.Spec.Resources = []string{"*"} }},
		{
			name: "a kind", do: func(s notifier) { s.Spec.Resources = []string{"Deployment"} },
			path: "spec.resources[0]", says: "plural.group such as deployments.apps, or *",
		},
		{
			name: "a resource beside all", do: func(s notifier) { s.Spec.Resources = []string{"*", "pods"} },
			path: "spec.resources", says: "beside *",
		},
		{
			name: "more resources than there may be", do: func(s notifier) { s.Spec.Resources = numbered("r", 101) },
			path: "spec.resources", says: "at most 100",
		},
		{name: "authors", do: func(s notifier) {
			s.Spec.Authors = configbutler.NotificationAuthors{Include: []string{"*@example.com"}, Exclude: []string{"system:*", "*"}}
		}},
		{
			name: "an author without a name", do: func(s notifier) { s.Spec.Authors.Include = []string{""} },
			path: "spec.authors.include[0]", says: "the name of a user",
		},
		{
			name: "an author twice", do: func(s notifier) { s.Spec.Authors.Exclude = []string{"jane", "jane"} },
			path: "spec.authors.exclude[1]", says: "Duplicate",
		},
		{
			name: "an author without end", do: func(s notifier) { s.Spec.Authors.Exclude = []string{strings.Repeat("a", 513)} },
			path: "spec.authors.exclude[0]", says: "512",
		},
		{
			name: "more authors than there may be", do: func(s notifier) { s.Spec.Authors.Include = numbered("a", 101) },
			path: "spec.authors.include", says: "at most 100",
		},
		{
			name: "an unknown severity", do: func(s notifier) { s.Spec.MinSeverity = "Fatal" },
			path: "spec.minSeverity", says: `"Info", "Warning", "Error"`,
		},
		{name: "unknown content", do: func(s notifier) { s.Spec.Content = "All" }, path: "spec.content", says: `"Fields", "Diff", "Full"`},
	})
}

func TestNotificationNamespaces(t *testing.T) {
	checkSinks(t, serverSink, []change[notifier]{
		{name: "names and globs", do: func(s notifier) { s.Spec.Namespaces = []string{"team-a", "shop-*", "*-x-*"} }},
		{name: "all", do: func(s notifier) { s.Spec.Namespaces = []string{"*"} }},
		{
			name: "no namespace", do: func(s notifier) { s.Spec.Namespaces = []string{"Team"} },
			path: "spec.namespaces[0]", says: "such as team-a, in which * stands for any characters",
		},
		{
			name: "more than there may be", do: func(s notifier) { s.Spec.Namespaces = numbered("n", 101) },
			path: "spec.namespaces", says: "at most 100",
		},
	})
}

func TestNotificationTimes(t *testing.T) {
	window := func(do func(*configbutler.SyncWindow)) func(notifier) {
		return func(s notifier) {
			w := configbutler.SyncWindow{
				Name: "nights", Kind: "Deny", Schedule: "0 22 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "Europe/Berlin",
			}
			do(&w)
			s.Spec.Windows = []configbutler.SyncWindow{w}
		}
	}
	checkSinks(t, notificationSink, []change[notifier]{
		{name: "no digest", do: func(s notifier) { s.Spec.DigestWindow = lasting(0) }},
		{name: "a digest a day", do: func(s notifier) { s.Spec.DigestWindow = lasting(24 * time.Hour) }},
		{
			name: "a digest later", do: func(s notifier) { s.Spec.DigestWindow = lasting(25 * time.Hour) },
			path: "spec.digestWindow", says: "at least 0s and at most 24h",
		},
		{
			name: "a digest before", do: func(s notifier) { s.Spec.DigestWindow = lasting(-time.Second) },
			path: "spec.digestWindow", says: "at least 0s and at most 24h",
		},
		{
			name: "no messages", do: func(s notifier) { s.Spec.MaxPerMinute = ptr.To(int32(0)) },
			path: "spec.maxPerMinute", says: "at least 1 and at most 60",
		},
		{
			name: "a flood of messages", do: func(s notifier) { s.Spec.MaxPerMinute = ptr.To(int32(61)) },
			path: "spec.maxPerMinute", says: "at least 1 and at most 60",
		},
		{name: "a window", do: window(func(*configbutler.SyncWindow) {})},
		{
			name: "a window that is none", do: window(func(w *configbutler.SyncWindow) { w.Schedule = "nightly" }),
			path: "spec.windows[0].schedule", says: "five fields of cron",
		},
		{
			name: "more windows than there may be", do: func(s notifier) { s.Spec.Windows = make([]configbutler.SyncWindow, 51) },
			path: "spec.windows", says: "at most 50",
		},
	})
}

func TestNotificationTexts(t *testing.T) {
	link := func(template string) func(notifier) { return func(s notifier) { s.Spec.LinkTemplate = template } }
	const path = "spec.linkTemplate"
	checkSinks(t, notificationSink, []change[notifier]{
		{name: "a link", do: link("https://page.example.com:8443/{namespace}/{kind}?name={name}#{name}")},
		{name: "a link without placeholders", do: link("http://page.example.com")},
		{name: "another placeholder", do: link("https://a/{uid}"), path: path, says: "no other placeholders than {kind}, {namespace} and {name}"},
		{name: "half a placeholder", do: link("https://a/{name"), path: path, says: "no other placeholders"},
		{name: "a host by namespace", do: link("https://{namespace}.example.com/"), path: path, says: "only after the host"},
		{name: "a host by name with nothing after it", do: link("https://example.{name}"), path: path, says: "only after the host"},
		{name: "a port by name", do: link("https://a:{name}?b"), path: path, says: "only after the host"},
		{name: "a user by name", do: link("https://{name}@a/b"), path: path, says: "only after the host"},
		{name: "another scheme", do: link("javascript://a/{name}"), path: path, says: "http://host/path or https://host/path"},
		{name: "a scheme by name", do: link("{name}://a"), path: path, says: "http://host/path or https://host/path"},
		{name: "credentials", do: link("https://jane:hush@a/{name}"), path: path, says: "must not contain credentials"},
		{name: "no host", do: link("https:///{name}"), path: path, says: "must name a host"},
		{name: "spaces", do: link("https://a/ b"), path: path, says: "spaces"},
		{name: "a link without end", do: link("https://a/" + strings.Repeat("b", 2048)), path: path, says: "2048"},
		{name: "templates", do: func(s notifier) {
			s.Spec.Template = configbutler.NotificationTemplate{Title: "x {{.Headline}}", Text: "y"}
		}},
		{
			name: "a title of an unknown field", do: func(s notifier) { s.Spec.Template.Title = "{{.Password}}" },
			path: "spec.template.title", says: "must be a Go text/template: ",
		},
		{
			name: "a text without end of an action", do: func(s notifier) { s.Spec.Template.Text = "a\n{{if .Headline}}" },
			path: "spec.template.text", says: "must be a Go text/template: ",
		},
		{
			name: "a title without end", do: func(s notifier) { s.Spec.Template.Title = strings.Repeat("a", 4097) },
			path: "spec.template.title", says: "4096",
		},
		{
			name: "a text without end", do: func(s notifier) { s.Spec.Template.Text = strings.Repeat("a", 4097) },
			path: "spec.template.text", says: "4096",
		},
	})
}

func TestNotificationSinkStatus(t *testing.T) {
	valid := func() notifier {
		return with(notificationSink(), func(s notifier) {
			s.Status = configbutler.NotificationSinkStatus{
				ObservedGeneration: 1, EditedBy: &configbutler.AutomatedBy{Username: "jane"}, Pending: 1, Messages: 2, Notifications: 3,
				Rejected: 4, Failures: 5, LastMessage: strings.Repeat("a", 256),
			}
		})
	}
	const says = "greater than or equal to 0"
	for _, c := range []change[notifier]{
		{name: "nothing", do: func(notifier) {}},
		{name: "a generation", do: func(s notifier) { s.Status.ObservedGeneration = -1 }, path: "status.observedGeneration", says: says},
		{name: "pending", do: func(s notifier) { s.Status.Pending = -1 }, path: "status.pending", says: says},
		{name: "messages", do: func(s notifier) { s.Status.Messages = -1 }, path: "status.messages", says: says},
		{name: "notifications", do: func(s notifier) { s.Status.Notifications = -1 }, path: "status.notifications", says: says},
		{name: "rejected", do: func(s notifier) { s.Status.Rejected = -1 }, path: "status.rejected", says: says},
		{name: "failures", do: func(s notifier) { s.Status.Failures = -1 }, path: "status.failures", says: says},
		{name: "a title without end", do: func(s notifier) { s.Status.LastMessage += "a" }, path: "status.lastMessage", says: "256"},
		{name: "no user", do: func(s notifier) { s.Status.EditedBy.Username = "" }, path: "status.editedBy.username", says: "send more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, validation.ValidateNotificationSinkStatusUpdate(with(valid(), c.do), valid()))
		})
	}
	for _, c := range []change[notifier]{
		{name: "everything else", do: func(s notifier) { s.Status.Messages++ }},
		{name: "another editor", do: func(s notifier) { s.Status.EditedBy.Username = "admin" }, path: "status.editedBy", says: "only the server writes it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, validation.ValidateNotificationSinkStatusRequest(with(valid(), c.do), valid()))
		})
	}
}

func TestNotificationTests(t *testing.T) {
	type request = *configbutler.NotificationTest
	for _, c := range []change[request]{
		{name: "an event", do: func(r request) { r.Spec.Event = configbutler.NotifyBypass }},
		{name: "the name in the path", do: func(r request) { r.Name = "chat" }},
		{name: "a template", do: func(r request) { r.Spec.Template = &configbutler.NotificationTemplate{Title: "x"} }},
		{name: "another name", do: func(r request) { r.Name = "mail" }, path: "metadata.name", says: "must be chat"},
		{name: "an unknown event", do: func(r request) { r.Spec.Event = "Synced" }, path: "spec.event", says: `"Prompted", "Completed"`},
		{
			name: "a template without end",
			do:   func(r request) { r.Spec.Template = &configbutler.NotificationTemplate{Text: strings.Repeat("a", 4097)} },
			path: "spec.template.text", says: "4096",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			request := &configbutler.NotificationTest{Spec: configbutler.NotificationTestSpec{Event: configbutler.NotifyPrompted}}
			c.do(request)
			c.check(t, validation.ValidateNotificationTest(request, "chat"))
		})
	}
}
