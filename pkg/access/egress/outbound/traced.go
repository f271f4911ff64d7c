// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traced adds the W3C header traceparent to requests whose span is recorded. It starts no spans, because the attributes that are usual for
// HTTP include URLs, and those of some receivers are secrets.
type traced struct{ http.RoundTripper }

// RoundTrip makes a request.
func (t traced) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		request = request.Clone(ctx)
		// The state of a trace can have any text from a client of this server.
		ids := trace.ContextWithSpanContext(ctx, span.SpanContext().WithTraceState(trace.TraceState{}))
		propagation.TraceContext{}.Inject(ids, propagation.HeaderCarrier(request.Header))
	}
	return t.RoundTripper.RoundTrip(request)
}

// CloseIdleConnections closes the connections that no request uses.
func (t traced) CloseIdleConnections() {
	if closer, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
