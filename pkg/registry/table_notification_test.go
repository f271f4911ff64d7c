// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// notificationLists have a row for each way in which a cell of a sink can look.
func notificationLists() map[string]runtime.Object {
	row := func(name string, spec configbutler.NotificationSinkSpec, status configbutler.NotificationSinkStatus) configbutler.NotificationSink {
		meta := named(name, 26*time.Hour)
		meta.Generation, status.ObservedGeneration = 1, 1
		spec.MinSeverity = configbutler.SeverityInfo
		if spec.Events == nil {
			spec.Events = []configbutler.NotificationEvent{configbutler.NotifyFailed, configbutler.NotifyChange}
		}
		return configbutler.NotificationSink{ObjectMeta: meta, Spec: spec, Status: status}
	}
	slack := func(channel string) configbutler.NotificationSinkSpec {
		return configbutler.NotificationSinkSpec{Slack: &configbutler.SlackSink{Channel: channel}}
	}
	email := func(to ...string) configbutler.NotificationSinkSpec {
		return configbutler.NotificationSinkSpec{Email: &configbutler.EmailSink{To: to}}
	}
	everything := configbutler.NotificationSinkSpec{
		Webhook: &configbutler.WebhookSink{URL: "https://hooks.example.com:8443/in?token=hush"},
		Events: []configbutler.NotificationEvent{
			configbutler.NotifyPrompted, configbutler.NotifyCompleted, configbutler.NotifyFailed, configbutler.NotifyConflicted,
			configbutler.NotifyDismissed, configbutler.NotifyChange, configbutler.NotifyBypass, configbutler.NotifyDestinationFailing,
			configbutler.NotifyOwnershipConflict, configbutler.NotifyCatalogFailing, configbutler.NotifyPipelineFailing,
		},
	}
	byDefault := configbutler.NotificationSinkSpec{Event: &configbutler.EventSink{}, Events: everything.Events[:8]}
	delivered := new(before(5 * time.Minute))
	return map[string]runtime.Object{"notificationsinks": &configbutler.NotificationSinkList{Items: []configbutler.NotificationSink{
		row("slack", slack("deploys"), configbutler.NotificationSinkStatus{
			Messages: 7, Notifications: 12, LastDeliveryTime: delivered, LastMessage: "teams/alice: 3 workloads changed",
			Conditions: ready(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "Notifications are sent"),
		}),
		row("slack-id", slack("C024BE91L"), configbutler.NotificationSinkStatus{Pending: 2, NextAttemptTime: new(metav1.NewTime(noon.Add(25 * time.Second)))}),
		row("slack-url", slack(""), configbutler.NotificationSinkStatus{}),
		row("teams", configbutler.NotificationSinkSpec{Teams: &configbutler.TeamsSink{}}, configbutler.NotificationSinkStatus{
			Conditions: ready(metav1.ConditionFalse, v1alpha1.ReasonPermissionLost,
				`user "jane" may not list environments.configbutler.ai in the namespace shop: nothing is sent until they may`),
		}),
		row("mail", email("Jane <jane@example.com>"), configbutler.NotificationSinkStatus{
			Failures: 3, Pending: 4, LastError: "the server does not offer STARTTLS", NextAttemptTime: new(metav1.NewTime(noon.Add(time.Minute))),
			Conditions: ready(metav1.ConditionFalse, v1alpha1.ReasonDeliveryFailed, "3 attempts failed"),
		}),
		row("mails", email("jane@example.com", "bob@example.com", "eve@example.com"), configbutler.NotificationSinkStatus{}),
		row("webhook", everything, configbutler.NotificationSinkStatus{Rejected: 2}),
		row("webhook-secret", configbutler.NotificationSinkSpec{Webhook: &configbutler.WebhookSink{}}, configbutler.NotificationSinkStatus{}),
		row("events", byDefault, configbutler.NotificationSinkStatus{}),
	}}}
}
