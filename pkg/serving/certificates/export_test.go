// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import "context"

// Watch watches what Run watches, until ctx is done.
func (k *Controller) Watch(ctx context.Context) error { return k.watches.start(ctx) }

// Unwatched returns when nothing is watched any more.
func (k *Controller) Unwatched() { k.watches.running.Wait() }

// Idle reports whether Run would leave out a look.
func (k *Controller) Idle() bool { return k.idle(k.config.Clock.Now()) }

// Idle reports whether Run would leave out a look.
func (l *Leader) Idle() bool { return l.idle(l.keeper.config.Clock.Now()) }
