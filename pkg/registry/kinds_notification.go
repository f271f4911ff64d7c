// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"fmt"
	"net/mail"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

func notificationSinks(
	options validation.Options,
) kind[*configbutler.NotificationSink, configbutler.NotificationSinkSpec, configbutler.NotificationSinkStatus] {
	type obj = *configbutler.NotificationSink
	return kind[obj, configbutler.NotificationSinkSpec, configbutler.NotificationSinkStatus]{
		plural: "notificationsinks", singular: "notificationsink", shortNames: []string{"sink"}, namespaced: true,
		newObject: func() obj { return &configbutler.NotificationSink{} },
		newList:   func() runtime.Object { return &configbutler.NotificationSinkList{} },
		spec:      func(o obj) *configbutler.NotificationSinkSpec { return &o.Spec },
		status:    func(o obj) *configbutler.NotificationSinkStatus { return &o.Status },
		validate:  func(o obj) field.ErrorList { return validation.ValidateNotificationSink(o, options) },
		validateUpdate: func(updated, old obj) field.ErrorList {
			return validation.ValidateNotificationSinkUpdate(updated, old, options)
		},
		validateStatusUpdate:  validation.ValidateNotificationSinkStatusUpdate,
		validateStatusRequest: validation.ValidateNotificationSinkStatusRequest,
		edits:                 notificationEdits(),
		columns: []column[obj]{
			textColumn("To", "Receiver.", receiver),
			textColumn("Events", "Kinds of notifications.", notifiedEvents),
			numberColumn("Pending", "Notifications that have not been delivered yet.", func(o obj) int64 { return o.Status.Pending }),
			{name: "State", description: "Summary of the status, in a sentence.", cellType: text, cell: sinkState},
			agoColumn("Last", "Time since the last message was delivered.", func(o obj) *metav1.Time { return o.Status.LastDeliveryTime }),
			wide(textColumn("Min-Severity", "Lowest severity that is sent.", func(o obj) string { return string(o.Spec.MinSeverity) })),
			wide(numberColumn("Messages", "Delivered messages.", func(o obj) int64 { return o.Status.Messages })),
			wide(numberColumn("Rejected", "Messages that the receiver rejected.", func(o obj) int64 { return o.Status.Rejected })),
			wide(textColumn("Last-Message", "Title of the last message.", func(o obj) string { return printable.Line(o.Status.LastMessage) })),
			wide(textColumn("Ready", "Whether notifications are collected and the receiver can be used.", func(o obj) string {
				return string(readyCondition(o.Status.Conditions).Status)
			})),
			wide(textColumn("Reason", "Why it is ready or not, in one word.", func(o obj) string {
				return readyCondition(o.Status.Conditions).Reason
			})),
			ageColumn[obj](),
		},
	}
}

// sinkState returns the state of a sink, cut like that of other kinds.
func sinkState(o *configbutler.NotificationSink, now time.Time) any {
	sink, err := versionedSink(o)
	if err != nil {
		return "" // what is stored has been converted before
	}
	return summary.Cut(summary.Sink(sink, now), stateWidth)
}

func versionedSink(o *configbutler.NotificationSink) (*v1alpha1.NotificationSink, error) {
	sink := &v1alpha1.NotificationSink{}
	if err := v1alpha1.Convert_configbutler_NotificationSink_To_v1alpha1_NotificationSink(o, sink, nil); err != nil {
		return nil, fmt.Errorf("converting a sink: %w", err)
	}
	return sink, nil
}

// receiver returns where a sink sends, such as slack #deploys. URLs can contain tokens, so only the host is shown.
func receiver(o *configbutler.NotificationSink) string {
	switch spec := &o.Spec; {
	case spec.Slack != nil:
		return strings.TrimSpace("slack " + channel(spec.Slack.Channel))
	case spec.Teams != nil:
		return "teams"
	case spec.Email != nil:
		return "mail " + recipients(spec.Email.To)
	case spec.Webhook != nil:
		return strings.TrimSpace("webhook " + host(spec.Webhook.URL))
	case spec.Event != nil:
		return "Events"
	}
	return ""
}

// channel returns a channel as Slack shows it. An ID, in capitals, is returned as it is.
func channel(name string) string {
	if name == "" || strings.HasPrefix(name, "#") || name == strings.ToUpper(name) {
		return name
	}
	return "#" + name
}

// recipients returns the first address without its name, and the number of the others.
func recipients(to []string) string {
	if len(to) == 0 {
		return ""
	}
	first := to[0]
	if address, err := mail.ParseAddress(first); err == nil {
		first = address.Address
	}
	if more := len(to) - 1; more > 0 {
		return fmt.Sprintf("%s +%d", first, more)
	}
	return first
}

func host(raw string) string {
	parsed, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return parsed.Host
}

// notifiedEvents returns as many kinds of notifications as fit a cell.
func notifiedEvents(o *configbutler.NotificationSink) string {
	const shown, everything = 3, 11
	if len(o.Spec.Events) == everything {
		return "all"
	}
	return cmp.Or(abbreviatedList(o.Spec.Events, shown), none)
}
