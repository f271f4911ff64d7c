// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logredact keeps what is read from the cluster out of the log.
package logredact

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// bodyVerbosity is the level from which clients log what a server answers.
const bodyVerbosity = 8

// WithoutBodies keeps what is read from the cluster, Secrets among it, out of the log at
// every verbosity.
func WithoutBodies(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	return klog.NewContext(ctx, logger.WithSink(discreetSink{logger.GetSink()}))
}

// discreetSink logs nothing that is as detailed as a body.
type discreetSink struct{ logr.LogSink }

var _ logr.CallDepthLogSink = discreetSink{}

// Enabled is asked before anything is logged.
func (s discreetSink) Enabled(level int) bool {
	return level < bodyVerbosity && s.LogSink.Enabled(level)
}

func (s discreetSink) WithValues(keysAndValues ...any) logr.LogSink {
	return discreetSink{s.LogSink.WithValues(keysAndValues...)}
}

func (s discreetSink) WithName(name string) logr.LogSink {
	return discreetSink{s.LogSink.WithName(name)}
}

// WithCallDepth lets log lines name the place that they are from.
func (s discreetSink) WithCallDepth(depth int) logr.LogSink {
	if sink, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return discreetSink{sink.WithCallDepth(depth)}
	}
	return s
}
