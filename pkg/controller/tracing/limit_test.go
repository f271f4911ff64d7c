// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/configbutler/slipstream/pkg/controller/tracing"
)

// limited returns a limited provider that samples all traces, and what it exports.
func limited() (trace.TracerProvider, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	return tracing.Limit(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))), exporter
}

// What a client sends does not determine the size of a span, nor how much memory it holds.
func TestLimit(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	attributes := trace.WithAttributes(attribute.String("start", long), attribute.String("part", long[:10]), attribute.Int("number", 7),
		attribute.StringSlice("slice", []string{long, "b"}), attribute.String("cut", strings.Repeat("é", 1000)[1:]))
	provider, exporter := limited()
	ctx, span := provider.Tracer("test").Start(t.Context(), long, attributes)
	span.SetAttributes(attribute.String("set", long), attribute.String("path", "/\xff"))
	span.AddEvent(long, attributes, trace.WithAttributes(attribute.String("err", "the object says so")))
	span.RecordError(errors.New("the remote says so"))
	span.SetStatus(codes.Error, "the remote says so")
	_, below := tracing.Start(ctx, "below", trace.WithAttributes(attribute.String("start", long)))
	below.SetName(long)
	below.End()
	span.End()

	values := map[attribute.Key]attribute.Value{}
	for _, span := range exporter.GetSpans() {
		texts, pairs := []string{span.Name}, span.Attributes
		for _, event := range span.Events {
			texts, pairs = append(texts, event.Name), append(pairs, event.Attributes...)
		}
		for _, pair := range pairs {
			values[pair.Key] = pair.Value
			switch pair.Value.Type() {
			case attribute.STRING:
				texts = append(texts, pair.Value.AsString())
			case attribute.STRINGSLICE:
				texts = append(texts, pair.Value.AsStringSlice()...)
			}
		}
		for _, text := range texts {
			if len(text) > 512 || !utf8.ValidString(text) || unsafe.StringData(text) == unsafe.StringData(long) {
				t.Errorf("exported %d bytes %.20q, or the whole text", len(text), text)
			}
		}
		if span.Status.Description != "" || len(span.Events) > 1 {
			t.Errorf("the error is exported as %+v with %v", span.Status, span.Events)
		}
	}
	if got, is := values["err"]; is {
		t.Errorf("the error is exported as %q", got.AsString())
	}
	if got := values["path"].AsString(); got != "/?" || values["number"].AsInt64() != 7 || len(values["set"].AsString()) != 512 {
		t.Errorf("exported %v", values)
	}
}

// The options of a span are kept.
func TestLimitKeepsOptions(t *testing.T) {
	provider, exporter := limited()
	ctx, outer := provider.Tracer("test").Start(t.Context(), "outer")
	at := time.Unix(1000, 0)
	_, span := provider.Tracer("test").Start(ctx, "inner", trace.WithNewRoot(), trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithLinks(trace.LinkFromContext(ctx)))
	span.End()
	got := exporter.GetSpans()[0]
	if got.Parent.IsValid() || !got.StartTime.Equal(at) || got.SpanKind != trace.SpanKindServer ||
		len(got.Links) != 1 || got.Links[0].SpanContext.SpanID() != outer.SpanContext().SpanID() {
		t.Errorf("exported %+v", got)
	}
}
