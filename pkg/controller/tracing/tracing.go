// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing starts the OpenTelemetry spans of controllers.
//
// The context of a controller carries the provider of --tracing-config-file, and a span is started below that of its context. Without
// the flag, or if a trace is not sampled, Start returns a span that records nothing.
//
// Attributes have names, namespaces, types, numbers and hashes of commits. They have no content of objects, no credentials, and no
// messages of errors, because these can quote a remote.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/klog/v2"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/configbutler/slipstream"

// header is the name of the W3C header with the IDs of a span.
const header = "traceparent"

// parent is a span of another goroutine or process, or none. Spans below it are started with its provider.
type parent struct {
	noop.Span
	provider trace.TracerProvider
	context  trace.SpanContext
}

// SpanContext returns the IDs of the span.
func (p parent) SpanContext() trace.SpanContext { return p.context }

// TracerProvider returns the provider of spans below this one.
func (p parent) TracerProvider() trace.TracerProvider { return p.provider }

// WithProvider returns a context in which Start begins traces with a provider. Nil means that there are none.
func WithProvider(ctx context.Context, provider trace.TracerProvider) context.Context {
	if provider == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, parent{provider: provider})
}

// Start starts a span below that of ctx, or a new trace. The lines that are logged with the returned context have its traceID if it is
// sampled.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	before := trace.SpanFromContext(ctx)
	ctx, span := before.TracerProvider().Tracer(scope).Start(ctx, name, options...)
	if id := span.SpanContext().TraceID(); span.IsRecording() && id != before.SpanContext().TraceID() {
		ctx = withTraceID(ctx, id)
	}
	return ctx, span
}

func withTraceID(ctx context.Context, id trace.TraceID) context.Context {
	return klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "traceID", id.String()))
}

// End ends a span, with the status Error if err is not nil.
func End(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// Parent returns the IDs of the span of ctx as a W3C traceparent, which can be stored; empty if the span is not sampled.
func Parent(ctx context.Context) string {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[header]
}

// WithParent returns a context in which Start starts spans below the one that Parent has returned. It returns ctx if there is none.
func WithParent(ctx context.Context, traceparent string) context.Context {
	remote := spanContext(traceparent)
	if !remote.IsValid() {
		return ctx
	}
	ctx = trace.ContextWithSpan(ctx, parent{provider: trace.SpanFromContext(ctx).TracerProvider(), context: remote})
	return withTraceID(ctx, remote.TraceID())
}

// Link returns a link to the span of Parent.
func Link(traceparent string) trace.Link { return trace.Link{SpanContext: spanContext(traceparent)} }

func spanContext(traceparent string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{header: traceparent})
	return trace.SpanContextFromContext(ctx)
}

// Object returns the attributes that identify an object. namespace and resourceVersion may be empty.
func Object(resource, namespace, name, resourceVersion string) []attribute.KeyValue {
	attributes := []attribute.KeyValue{attribute.String("k8s.object.resource", resource), attribute.String("k8s.object.name", name)}
	if namespace != "" {
		attributes = append(attributes, attribute.String("k8s.namespace.name", namespace))
	}
	if resourceVersion != "" {
		attributes = append(attributes, attribute.String("k8s.object.resource_version", resourceVersion))
	}
	return attributes
}
