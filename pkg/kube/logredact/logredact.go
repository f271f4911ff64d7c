// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logredact removes response bodies from the log, and escapes what a terminal that shows the log would obey.
package logredact

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// bodyVerbosity is the level from which clients log response bodies.
const bodyVerbosity = 8

// WithoutBodies returns a context whose logger never logs response bodies, which may hold Secrets, at any verbosity.
func WithoutBodies(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	return klog.NewContext(ctx, logger.WithSink(redactingSink{logger.GetSink()}))
}

// redactingSink drops messages at the verbosity of response bodies.
type redactingSink struct{ logr.LogSink }

var _ logr.CallDepthLogSink = redactingSink{}

// Enabled implements logr.LogSink.
func (s redactingSink) Enabled(level int) bool {
	return level < bodyVerbosity && s.LogSink.Enabled(level)
}

func (s redactingSink) WithValues(keysAndValues ...any) logr.LogSink {
	return redactingSink{s.LogSink.WithValues(keysAndValues...)}
}

func (s redactingSink) WithName(name string) logr.LogSink {
	return redactingSink{s.LogSink.WithName(name)}
}

// WithCallDepth implements logr.CallDepthLogSink, so that log lines name their source.
func (s redactingSink) WithCallDepth(depth int) logr.LogSink {
	if sink, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return redactingSink{sink.WithCallDepth(depth)}
	}
	return s
}
