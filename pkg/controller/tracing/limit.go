// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// maxLength is the maximum length of a name and of an attribute in bytes. A span of a request has up to eight strings that a client
// determines, so a batch of 512 spans is below the 4 MiB that a collector accepts over gRPC by default.
const maxLength = 512

// Limit returns a provider whose spans are small, whatever a client sends. Upstream's spans of requests contain URLs and headers, and are
// started before the request is authorized.
//
// Longer strings are truncated, and copied, because a part of a string keeps all of it in memory until the span is exported. Bytes that
// are no UTF-8 are replaced: protobuf does not encode them, and the whole batch would be dropped. Messages of errors are removed.
func Limit(provider trace.TracerProvider) trace.TracerProvider { return limitedProvider{provider} }

type limitedProvider struct{ trace.TracerProvider }

// Tracer returns a tracer that starts limited spans.
func (p limitedProvider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return limitedTracer{p.TracerProvider.Tracer(name, options...), p}
}

type limitedTracer struct {
	trace.Tracer
	provider limitedProvider
}

// Start starts a limited span.
func (t limitedTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(options...)
	limited := []trace.SpanStartOption{
		trace.WithAttributes(limitAll(config.Attributes())...), trace.WithLinks(config.Links()...), trace.WithSpanKind(config.SpanKind()),
	}
	if config.NewRoot() {
		limited = append(limited, trace.WithNewRoot())
	}
	if at := config.Timestamp(); !at.IsZero() {
		limited = append(limited, trace.WithTimestamp(at))
	}
	ctx, started := t.Tracer.Start(ctx, limit(name), limited...)
	span := limitedSpan{started, t.provider}
	return trace.ContextWithSpan(ctx, span), span
}

type limitedSpan struct {
	trace.Span
	provider limitedProvider
}

// TracerProvider returns the provider of spans below this one.
func (s limitedSpan) TracerProvider() trace.TracerProvider { return s.provider }

// SetName sets the name.
func (s limitedSpan) SetName(name string) { s.Span.SetName(limit(name)) }

// SetAttributes sets attributes.
func (s limitedSpan) SetAttributes(attributes ...attribute.KeyValue) {
	if s.IsRecording() {
		s.Span.SetAttributes(limitAll(attributes)...)
	}
}

// AddEvent adds an event.
func (s limitedSpan) AddEvent(name string, options ...trace.EventOption) {
	if s.IsRecording() {
		config := trace.NewEventConfig(options...)
		s.Span.AddEvent(limit(name), trace.WithTimestamp(config.Timestamp()), trace.WithAttributes(limitAll(config.Attributes())...))
	}
}

// SetStatus sets the code without its description, which is the message of an error.
func (s limitedSpan) SetStatus(code codes.Code, _ string) { s.Span.SetStatus(code, "") }

// RecordError does nothing, because the event is the message of the error.
func (s limitedSpan) RecordError(error, ...trace.EventOption) {}

func limitAll(attributes []attribute.KeyValue) []attribute.KeyValue {
	limited := make([]attribute.KeyValue, 0, len(attributes))
	for _, pair := range attributes {
		if pair.Key == "err" || pair.Key == "error" { // Upstream's storage: the message can quote an object.
			continue
		}
		switch pair.Value.Type() {
		case attribute.STRING:
			pair = pair.Key.String(limit(pair.Value.AsString()))
		case attribute.STRINGSLICE:
			values := pair.Value.AsStringSlice()
			for j, value := range values {
				values[j] = limit(value)
			}
			pair = pair.Key.StringSlice(values)
		}
		limited = append(limited, pair)
	}
	return limited
}

// limit returns a copy also of a short string, which can be a part of a long one, as a path is of its URL.
func limit(text string) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxLength)], "?"))
}
