// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import "context"

// task is a goroutine in the background. A nil task has ended.
type task struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// start starts a task. ended is called when it has ended.
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

// stop cancels the task and waits until it has ended.
func (t *task) stop() {
	if t == nil {
		return
	}
	t.cancel()
	<-t.done
}

// isRunning reports whether the task has not ended.
func (t *task) isRunning() bool {
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
