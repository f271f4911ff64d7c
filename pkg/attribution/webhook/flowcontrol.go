// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// segmentKey is the key of the segment in a request's context.
type segmentKey struct{}

// withoutSegment removes the secret from the webhook's path before any filter can record it: access logs, audit logs,
// traces and panics contain the path of a request. Afterwards the secret is only in the request's context.
func (e *Endpoints) withoutSegment(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if segment, ok := strings.CutPrefix(r.URL.Path, webhookPath); ok && e.segments != nil {
			r = r.WithContext(context.WithValue(r.Context(), segmentKey{}, segment))
			r.URL = &url.URL{Path: webhookPath, RawQuery: r.URL.RawQuery}
			r.RequestURI = r.URL.RequestURI()
		}
		handler.ServeHTTP(w, r)
	})
}

// flowControl exempts requests from priority and fairness that are authenticated by a certificate or secret of the
// endpoints. Other clients cannot authenticate at these paths, so they cannot flood them, and the endpoints have bounds
// of their own (maxAuditMemory and maxReviewMemory). In a shared queue, the reviews of a busy cluster would time out and
// its audit events would be dropped when they are needed most; and bursts from the API server would take seats from other
// users of the API. Reviews that come through the aggregator are already exempt by upstream's FlowSchema for
// system:masters.
//
// With --enable-priority-and-fairness=false, requests to both paths count towards --max-mutating-requests-inflight like
// any other.
type flowControl struct {
	flowcontrol.Interface
	endpoints *Endpoints
}

// Handle implements flowcontrol.Interface.
func (p flowControl) Handle(
	ctx context.Context, digest flowcontrol.RequestDigest,
	note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	estimate func() fcrequest.WorkEstimate, queued fq.QueueNoteFn, execute func(),
) {
	if path := digest.RequestInfo.Path; p.endpoints.isAudit(path) || p.endpoints.isWebhook(path) {
		execute()
		return
	}
	p.Interface.Handle(ctx, digest, note, estimate, queued, execute)
}
