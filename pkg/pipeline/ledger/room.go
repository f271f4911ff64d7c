// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"sync"
)

// room lets callers wait while too many changes wait to be written.
type room struct {
	// cond is signaled when a caller need not wait any more.
	cond *sync.Cond
	// running reports whether Run is running.
	running bool
	// blocked is the error of the last write, if it failed.
	blocked error
}

// wait waits while the buffer is full, unless writes fail or Run is not running. The lock is released meanwhile.
func (r *room) wait(isFull func() bool) {
	for isFull() && r.running && r.blocked == nil {
		r.cond.Wait()
	}
}

func (r *room) setRunning(running bool) {
	r.running = running
	r.cond.Broadcast()
}

// written records the result of a write.
func (r *room) written(err error) {
	if !errors.Is(err, context.Canceled) { // That error is the caller's, and not the store's.
		r.blocked = err
	}
	r.cond.Broadcast()
}
