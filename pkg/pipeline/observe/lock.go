// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import "context"

// lock is a mutex. Waiting for it ends with a context.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lock) release() { <-l }
