// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/tracing"
)

// maxTracedObjects bounds the objects that a span names.
const maxTracedObjects = 16

// startSpan starts the span of an update, which begins when its trigger was detected.
func startSpan(ctx context.Context, catalog *v1alpha1.AppCatalog, why trigger) (context.Context, trace.Span) {
	ctx, span := tracing.Start(ctx, "catalog.update", trace.WithTimestamp(why.detected))
	if !span.IsRecording() {
		return ctx, span
	}
	span.SetAttributes(tracing.Object("appcatalogs."+v1alpha1.GroupName, catalog.Namespace, catalog.Name, catalog.ResourceVersion)...)
	var objects []string
	for _, change := range why.changes[:min(len(why.changes), maxTracedObjects)] {
		objects = append(objects, change.Kind+" "+catalog.Spec.SourceNamespace+"/"+change.Name)
	}
	span.SetAttributes(
		attribute.Int("slipstream.changes", len(why.changes)), attribute.StringSlice("slipstream.objects", objects),
	)
	return ctx, span
}

// traceRecord adds the record and the revision of an update to its span.
func traceRecord(ctx context.Context, catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus) {
	trace.SpanFromContext(ctx).SetAttributes(
		attribute.String("slipstream.syncstatus", record.Name), attribute.Int64("slipstream.revision", catalog.Status.Revision),
	)
}
