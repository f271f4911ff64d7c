// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import "context"

// Watch watches what Run watches, until ctx is done.
func (c *Controller) Watch(ctx context.Context) error { return c.watches.start(ctx) }

// Unwatched returns when nothing is watched any more.
func (c *Controller) Unwatched() { c.watches.running.Wait() }

// Idle reports whether Run would leave out a look.
func (c *Controller) Idle() bool { return c.idle(c.config.Clock.Now()) }

// Idle reports whether Run would leave out a look.
func (l *Leader) Idle() bool { return l.idle(l.controller.config.Clock.Now()) }
