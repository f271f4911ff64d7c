// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net/url"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
)

// TestInterruption ends commands that do not end with their context, and leaves time to those that do.
func TestInterruption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := untilEnded(ctx, time.Millisecond, func(context.Context) error { select {} })
	if !errors.Is(err, context.Canceled) || app.ExitCode(err) != 130 || !app.IsFailure(err) {
		t.Errorf("a command that hangs: %v", err)
	}
	if err := untilEnded(ctx, time.Hour, func(ctx context.Context) error { <-ctx.Done(); return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("a command that ends late: %v", err)
	}
	if err := untilEnded(t.Context(), 0, func(context.Context) error { return nil }); err != nil {
		t.Errorf("a command that ends: %v", err)
	}
}

// TestExceptExpected passes on all errors but those that discovery returns, too, and those of a watch that was ended.
func TestExceptExpected(t *testing.T) {
	var seen []string
	record := func(_ context.Context, _ error, message string, _ ...any) { seen = append(seen, message) }
	for _, handle := range exceptExpected([]utilruntime.ErrorHandler{record}) {
		handle(t.Context(), io.EOF, "Couldn't get current server API group list")
		handle(t.Context(), io.EOF, "Failed to watch")
		handle(t.Context(), &url.Error{Err: context.Canceled}, "Failed to watch")
	}
	if len(seen) != 1 || seen[0] != "Failed to watch" {
		t.Errorf("handled %q", seen)
	}
}
