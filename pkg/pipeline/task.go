// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import "context"

// task is what goes on beside the turns, until it ends by itself or is stopped. A nil one has ended.
type task struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// start has do begin. ended is called when it has ended, however that came.
func start(ctx context.Context, do func(context.Context), ended func()) *task {
	ctx, cancel := context.WithCancel(ctx)
	t := &task{cancel, make(chan struct{})}
	go func() {
		defer ended()
		defer close(t.done)
		defer cancel()
		do(ctx)
	}()
	return t
}

// stop ends it, and waits until it has.
func (t *task) stop() {
	if t == nil {
		return
	}
	t.cancel()
	<-t.done
}

// goesOn says whether it has not ended.
func (t *task) goesOn() bool {
	if t == nil {
		return false
	}
	select {
	case <-t.done:
		return false
	default:
		return true
	}
}
