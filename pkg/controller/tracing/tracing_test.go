// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/configbutler/slipstream/pkg/controller/tracing"
)

// sampled returns a context with a provider that samples all traces, and what it exports.
func sampled(t *testing.T) (context.Context, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	return tracing.WithProvider(t.Context(), provider), exporter
}

// A trace continues below a parent that was stored, with the provider of the context.
func TestStoredParent(t *testing.T) {
	ctx, exporter := sampled(t)
	below, first := tracing.Start(ctx, "first")
	stored := tracing.Parent(below)
	first.End()
	_, second := tracing.Start(tracing.WithParent(ctx, stored), "second", trace.WithLinks(tracing.Link(stored)))
	tracing.End(second, errors.New("the remote says so"))

	spans := exporter.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("got %d spans, want 2", len(spans))
	}
	a, b := spans[0], spans[1]
	if a.Parent.IsValid() || b.SpanContext.TraceID() != a.SpanContext.TraceID() || b.Parent.SpanID() != a.SpanContext.SpanID() ||
		b.Links[0].SpanContext.SpanID() != a.SpanContext.SpanID() {
		t.Errorf("%+v is not below %+v", b, a)
	}
	if b.Status.Code != codes.Error || b.Status.Description != "" || len(b.Events) > 0 {
		t.Errorf("the error is exported as %+v with %v", b.Status, b.Events)
	}
}

// Without a provider, and below what is no parent, nothing is recorded and nothing stored.
func TestWithoutTraces(t *testing.T) {
	for name, ctx := range map[string]context.Context{
		"no provider": t.Context(), "none": tracing.WithProvider(t.Context(), nil),
		"never sampled": tracing.WithProvider(t.Context(), sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))),
	} {
		ctx, span := tracing.Start(ctx, "change")
		if span.IsRecording() || tracing.Parent(ctx) != "" {
			t.Errorf("%s: a span is recorded", name)
		}
	}
	ctx, _ := sampled(t)
	for _, stored := range []string{"", "00-nonsense"} {
		if tracing.WithParent(ctx, stored) != ctx {
			t.Errorf("%q is a parent", stored)
		}
	}
}

// Lines that are logged in a sampled trace have its ID once.
func TestLog(t *testing.T) {
	ctx, _ := sampled(t)
	var log bytes.Buffer
	ctx = klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
	klog.FromContext(ctx).Info("before")
	ctx, span := tracing.Start(ctx, "outer")
	ctx, _ = tracing.Start(ctx, "inner")
	klog.FromContext(ctx).Info("within")
	before, within, _ := strings.Cut(log.String(), "\n")
	if want := `traceID="` + span.SpanContext().TraceID().String() + `"`; strings.Contains(before, "traceID") || strings.Count(within, want) != 1 {
		t.Errorf("%s\n%s\nwant %s in the second line", before, within, want)
	}
}
