// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
)

// The context of a request has what upstream's clients send on.
func TestTraceState(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	served := false
	handler := chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		served = true
		span := trace.SpanContextFromContext(r.Context())
		if got := span.TraceState().String(); got != "" || r.Header.Get("Tracestate") != "" {
			t.Errorf("tracestate is %q", got)
		}
		if got := baggage.FromContext(r.Context()).String(); got != "" || r.Header.Get("Baggage") != "" {
			t.Errorf("baggage is %q", got)
		}
		if got := r.Header.Get("Traceparent"); got != parent {
			t.Errorf("traceparent is %q", got)
		}
	}))
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, typesOfGroup, http.NoBody)
	request.Header = http.Header{"Traceparent": {parent}, "Tracestate": {"vendor=secret"}, "Baggage": {"user=secret"}}
	handler.ServeHTTP(httptest.NewRecorder(), request)
	if !served {
		t.Error("the request was not served")
	}
}
