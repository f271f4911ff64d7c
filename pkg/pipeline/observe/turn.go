// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import "context"

// turn is held by one at a time. Unlike a mutex, it can be waited for as long as a context lasts.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) leave() { <-t }
