// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"
)

// DrainTimeout is how long the work that a controller completes after its context has ended may take. It must end before another process can
// take the Lease, so it is shorter than the part of the Lease's duration that is left at the renew deadline.
const DrainTimeout = 2 * time.Second

// Draining returns a context that ends DrainTimeout after ctx, or when cancel is called. It is for writes that must not be interrupted, such
// as that of the result of a request that has been sent.
func Draining(ctx context.Context) (draining context.Context, cancel context.CancelFunc) {
	draining, cancel = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		select {
		case <-time.After(DrainTimeout):
			cancel()
		case <-draining.Done():
		}
	})
	return draining, cancel
}
