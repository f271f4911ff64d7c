// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// TestQueueStops checks that no key is reconciled once the context is done, and that none is left.
func TestQueueStops(t *testing.T) {
	q := NewQueue[int]("test", clock.RealClock{})
	for key := range 100 {
		q.Add(key)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reconciled atomic.Int32
	q.Run(ctx, 1, func(ctx context.Context, _ int) (time.Time, error) {
		reconciled.Add(1)
		cancel()
		return time.Time{}, ctx.Err()
	})
	if got := reconciled.Load(); got != 1 {
		t.Errorf("%d keys were reconciled, want 1", got)
	}
	if n := q.keys.Len(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
