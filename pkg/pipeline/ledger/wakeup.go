// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// wakeup ends the wait of Next early. It needs no lock.
type wakeup struct {
	clock clock.Clock
	// signals has room for one signal.
	signals chan struct{}
}

func newWakeup(clock clock.Clock) wakeup {
	return wakeup{clock: clock, signals: make(chan struct{}, 1)}
}

// signal ends a call of sleep, the current or the next one.
func (w wakeup) signal() {
	select {
	case w.signals <- struct{}{}:
	default:
	}
}

// sleep waits for a signal, and if limited at most for the given time. The error is that of ctx.
func (w wakeup) sleep(ctx context.Context, wait time.Duration, limited bool) error {
	var over <-chan time.Time
	if limited {
		timer := w.clock.NewTimer(wait)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.signals:
	case <-over:
	}
	return nil
}
