// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/tracing"
)

// executeTraced executes the job in a trace that begins when its change was detected. The requests to the cluster are spans of the client.
func (x *execution) executeTraced(ctx context.Context) (result Result, err error) {
	record := x.job.Records[0]
	detected := trace.WithTimestamp(record.Status.DetectedAt.Time)
	ctx, change := tracing.Start(ctx, "environment.change", detected)
	defer func() { tracing.End(change, err) }()
	if change.IsRecording() {
		e := x.job.Environment
		change.SetAttributes(tracing.Object("environments."+v1alpha1.GroupName, e.Namespace, e.Name, e.ResourceVersion)...)
		change.SetAttributes(
			attribute.String("slipstream.syncstatus", record.Name), attribute.String("slipstream.sync.type", string(record.Spec.Type)),
			attribute.String("slipstream.sync.action", string(x.job.Request.Action)),
		)
	}
	_, waiting := tracing.Start(ctx, "environment.wait", detected)
	waiting.End()
	ctx, sync := tracing.Start(ctx, "environment.sync")
	defer func() { tracing.End(sync, err) }()
	result, err = x.execute(ctx)
	sync.SetAttributes(
		attribute.Int64("slipstream.revision", result.Revision), attribute.Int("slipstream.written", len(result.Written)),
		attribute.Int("slipstream.failures", len(result.Failures)), attribute.String("slipstream.state", string(x.records[0].record.Status.State)),
	)
	return result, err
}
