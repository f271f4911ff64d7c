// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
)

// Only a recorded span is in the headers of a request, and nothing else of its trace.
func TestTraceparent(t *testing.T) {
	received := http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received = r.Header.Clone() }))
	t.Cleanup(server.Close)
	client, err := outbound.NewClient(&proxy.Network{Direct: (&net.Dialer{}).DialContext}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	// The request of a client of the server has a sampled trace with a state.
	remote := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=text",
	})
	recorded, span := sdktrace.NewTracerProvider().Tracer("test").Start(remote, "test")
	unsampled, _ := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test").Start(t.Context(), "test")
	for name, test := range map[string]struct {
		ctx  context.Context //nolint:containedctx // a case of the table
		want string
	}{
		"no trace": {t.Context(), ""}, "not sampled": {unsampled, ""}, "not recorded": {remote, ""},
		"recorded": {recorded, "00-0af7651916cd43dd8448eb211c80319c-" + span.SpanContext().SpanID().String() + "-01"},
	} {
		request, err := http.NewRequestWithContext(test.ctx, http.MethodPost, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Do(request); err != nil {
			t.Fatal(err)
		}
		if got := received.Get("Traceparent"); got != test.want || received.Get("Tracestate") != "" || request.Header.Get("Traceparent") != "" {
			t.Errorf("%s: headers = %v, want traceparent %q", name, received, test.want)
		}
	}
}
