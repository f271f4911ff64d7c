// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Run runs the controllers of a process, and beside them what they need, such as the discovery of types, until ctx ends. An error of the
// controllers before that fails the test. ended is closed when everything has returned.
func Run(ctx context.Context, t testing.TB, controllers func(context.Context) error, beside func(context.Context)) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var running wait.Group
		defer running.Wait()
		running.StartWithContext(ctx, beside)
		if err := controllers(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}()
	return done
}
