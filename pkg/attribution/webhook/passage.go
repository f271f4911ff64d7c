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

// segmentKey is that of the segment in a request's context.
type segmentKey struct{}

// withoutSegment takes the secret out of the webhook's path before anything can write it down: access logs, audit logs,
// traces and panics show the path of a request. From there on it is in the request's context only.
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

// passage lets requests pass priority and fairness that have shown a certificate or a secret of ours. Nobody else can
// be the user of these paths, so they cannot be flooded, and their own bounds hold instead (maxAuditMemory and
// maxReviewMemory). In a queue with everybody's requests, a busy cluster's reviews would time out and its audit events be
// given up when they are wanted most; and the API server would take seats from the users of the API, in bursts. Reviews that
// come through the aggregator are exempt without our doing, by upstream's FlowSchema for system:masters.
//
// With --enable-priority-and-fairness=false there is one bound for all, --max-mutating-requests-inflight, of which both
// paths take their part like every other request.
type passage struct {
	flowcontrol.Interface
	endpoints *Endpoints
}

// Handle implements flowcontrol.Interface.
func (p passage) Handle(
	ctx context.Context, digest flowcontrol.RequestDigest, note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	estimate func() fcrequest.WorkEstimate, queued fq.QueueNoteFn, execute func(),
) {
	if path := digest.RequestInfo.Path; p.endpoints.isAudit(path) || p.endpoints.isWebhook(path) {
		execute()
		return
	}
	p.Interface.Handle(ctx, digest, note, estimate, queued, execute)
}
