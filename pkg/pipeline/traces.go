// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"path"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/configbutler/slipstream/pkg/controller/tracing"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// maxTracedObjects bounds the objects that a span names.
const maxTracedObjects = 16

// startSpan starts the span of a delivery, which begins when the batch was created. The calls to the receiver carry its IDs.
func (w *worker) startSpan(ctx context.Context, batch item.Batch) (context.Context, trace.Span) {
	ctx, span := tracing.Start(ctx, "pipeline.deliver", trace.WithTimestamp(batch.At))
	if !span.IsRecording() {
		return ctx, span
	}
	keys := batch.Keys()
	var objects []string
	for _, key := range keys[:min(len(keys), maxTracedObjects)] {
		objects = append(objects, key.ObjectKind+" "+path.Join(key.Namespace, key.Name))
	}
	span.SetAttributes(
		attribute.String("slipstream.pipeline", w.numbers.pipeline), attribute.String("slipstream.sink", w.numbers.sink),
		attribute.String("slipstream.batch", batch.ID), attribute.Int("slipstream.changes", len(keys)),
		attribute.StringSlice("slipstream.objects", objects),
	)
	return ctx, span
}
