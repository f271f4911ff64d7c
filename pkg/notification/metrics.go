// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"

	slipmetrics "github.com/configbutler/slipstream/pkg/metrics"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
)

// The labels are the namespaces and names of sinks. Metrics are removed with them. Prometheus sets the label namespace itself, to that of the
// server.
var (
	pendingGauge = slipmetrics.NewGaugeVec("notification_pending", "Notifications that a sink has collected and not delivered.",
		"sink_namespace", "sink")
	failuresGauge = slipmetrics.NewGaugeVec("notification_sink_failures", "Consecutive failed attempts to deliver a message of a sink.",
		"sink_namespace", "sink")
	messages = slipmetrics.NewCounterVec("notification_messages_total",
		"Attempts to deliver a message, by result: delivered, rejected, or retry (to be sent again).", "sink_namespace", "sink", "result")
	delivered = slipmetrics.NewCounterVec("notification_delivered_total", "Notifications in delivered messages.", "sink_namespace", "sink")
	spent     = slipmetrics.NewHistogramVec("notification_delivery_duration_seconds", "Duration of an attempt to deliver a message.",
		[]float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30}, "sink_namespace", "sink")
)

func init() {
	legacyregistry.MustRegister(pendingGauge, failuresGauge, messages, delivered, spent)
}

// outcomes are the values of the result label.
var outcomes = []delivery.Outcome{delivery.Delivered, delivery.Rejected, delivery.Retry}

// numbers are the metrics of one sink.
type numbers struct{ types.NamespacedName }

// numbersOf returns the metrics of a sink.
func numbersOf(name types.NamespacedName) numbers { return numbers{name} }

// begin creates the counters, so that Prometheus sees the first increment of each.
func (n numbers) begin() {
	for _, outcome := range outcomes {
		messages.WithLabelValues(n.Namespace, n.Name, strings.ToLower(string(outcome)))
	}
	delivered.WithLabelValues(n.Namespace, n.Name)
}

// attempted counts an attempt to deliver a message.
func (n numbers) attempted(outcome delivery.Outcome, notifications int, took time.Duration) {
	messages.WithLabelValues(n.Namespace, n.Name, strings.ToLower(string(outcome))).Inc()
	spent.WithLabelValues(n.Namespace, n.Name).Observe(took.Seconds())
	if outcome == delivery.Delivered {
		delivered.WithLabelValues(n.Namespace, n.Name).Add(float64(notifications))
	}
}

// set sets the gauges.
func (n numbers) set(pending, failures int) {
	pendingGauge.WithLabelValues(n.Namespace, n.Name).Set(float64(pending))
	failuresGauge.WithLabelValues(n.Namespace, n.Name).Set(float64(failures))
}

// forgetGauges removes the gauges of all sinks. Those of a replica that no longer leads would be out of date.
func forgetGauges() {
	pendingGauge.Reset()
	failuresGauge.Reset()
}

// forget removes the metrics of a deleted sink.
func (n numbers) forget() {
	for _, outcome := range outcomes {
		messages.DeleteLabelValues(n.Namespace, n.Name, strings.ToLower(string(outcome)))
	}
	for _, vec := range []interface{ DeleteLabelValues(...string) bool }{pendingGauge, failuresGauge, delivered, spent} {
		vec.DeleteLabelValues(n.Namespace, n.Name)
	}
}
