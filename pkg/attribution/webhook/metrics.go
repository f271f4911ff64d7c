// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

// What becomes of an audit event or an admission review.
const (
	// recorded: it gave facts, which are durable (audit), or on their way (admission).
	recorded = "recorded"
	// ignored: it changes nothing that is mirrored.
	ignored = "ignored"
	// unreadable: it contradicts itself, or lacks what every one has.
	unreadable = "unreadable"
	// failed: its facts could not be written; the API server was told so and tries again.
	failed = "failed"
	// dropped: there are more than there is room for.
	dropped = "dropped"
)

// Where a request is refused, and why.
const (
	auditEndpoint, admissionEndpoint, webhookEndpoint = "audit", "admission", "webhook"
	// unauthenticated: there is no proof of who sends it, or not the one that is asked for.
	unauthenticated = "unauthenticated"
	// unauthorized: who sends it may not.
	unauthorized = "unauthorized"
)

var (
	auditEvents = metrics.NewCounterVec("audit_events_total",
		"Audit events that were taken, by what became of them: recorded, ignored (they change nothing that is mirrored), unreadable, or failed (not recorded; the API server tries again).",
		"outcome")
	admissionReviews = metrics.NewCounterVec("admission_reviews_total",
		"Admission reviews that were taken, by what became of them: recorded, ignored (they change nothing that is mirrored), unreadable, or dropped (too many).",
		"outcome")
	refusals = metrics.NewCounterVec("attribution_refusals_total",
		"Requests that wanted to tell who made changes and were refused, by endpoint (audit, admission, webhook) and reason (unauthenticated, unauthorized).",
		"endpoint", "reason")
)

func init() {
	legacyregistry.MustRegister(auditEvents, admissionReviews, refusals)
	// What counts from 0 has its first time counted as an increase.
	for _, outcome := range []string{recorded, ignored, unreadable, failed} {
		auditEvents.WithLabelValues(outcome)
	}
	for _, outcome := range []string{recorded, ignored, unreadable, dropped} {
		admissionReviews.WithLabelValues(outcome)
	}
	for _, endpoint := range []string{auditEndpoint, admissionEndpoint, webhookEndpoint} {
		for _, reason := range []string{unauthenticated, unauthorized} {
			refusals.WithLabelValues(endpoint, reason)
		}
	}
}
