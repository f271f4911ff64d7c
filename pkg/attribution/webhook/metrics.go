// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

// Outcomes of an audit event or an admission review.
const (
	// recorded: its facts are durable (audit) or queued (admission).
	recorded = "recorded"
	// ignored: it changes nothing that is mirrored.
	ignored = "ignored"
	// unreadable: it is contradictory or lacks a required field.
	unreadable = "unreadable"
	// failed: its facts could not be written; the API server received an error and retries.
	failed = "failed"
	// dropped: the queue or the memory for reviews is full.
	dropped = "dropped"
)

// Endpoints at which a request is refused, and reasons.
const (
	auditEndpoint, admissionEndpoint, webhookEndpoint = "audit", "admission", "webhook"
	// unauthenticated: it has no credentials that the endpoint accepts.
	unauthenticated = "unauthenticated"
	// unauthorized: its user is not allowed to post.
	unauthorized = "unauthorized"
)

var (
	auditEvents = metrics.NewCounterVec("audit_events_total",
		"Audit events received, by outcome: recorded, ignored (changed nothing that is mirrored), unreadable, or failed (not recorded; "+
			"the API server retries).",
		"outcome")
	admissionReviews = metrics.NewCounterVec("admission_reviews_total",
		"Admission reviews received, by outcome: recorded, ignored (changed nothing that is mirrored), unreadable, or dropped (too many).",
		"outcome")
	refusals = metrics.NewCounterVec("attribution_refusals_total",
		"Refused requests with audit events or admission reviews, by endpoint (audit, admission, webhook) and reason (unauthenticated, "+
			"unauthorized).",
		"endpoint", "reason")
)

func init() {
	legacyregistry.MustRegister(auditEvents, admissionReviews, refusals)
	// Counters start at 0, so that rate() sees their first increment.
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
