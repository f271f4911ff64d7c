// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
)

// redoPause is the delay before a job whose outcome could not be recorded is executed again.
const redoPause = 5 * time.Second

// starter starts jobs, and enqueues the environments that can start theirs because of a change of the start queue.
type starter struct {
	executor Executor
	clock    clock.PassiveClock
	// starts limits and orders the starts of syncs. runs are the syncs in progress.
	starts *startQueue
	runs   *runs
	// queue has the environments to reconcile.
	queue *controller.Queue[types.NamespacedName]
}

// begin starts a job in the background.
func (s *starter) begin(ctx context.Context, begun syncer.Job) {
	name, pause := nameOf(begun.Environment), time.Duration(0)
	s.runs.begin(ctx, begun.Environment, func(ctx context.Context) {
		pause = s.execute(ctx, begun)
		// The sync still counts as in progress here, so the environment itself does not start the next one.
		for _, next := range s.starts.end(name) {
			s.queue.Add(next)
		}
	}, func() { s.queue.AddAfter(name, pause) })
}

// execute executes a job, and returns the delay before the next reconcile.
func (s *starter) execute(ctx context.Context, begun syncer.Job) (pause time.Duration) {
	since := s.clock.Now()
	outcome, err := s.executor.Execute(ctx, begun)
	switch {
	case err == nil:
		measure(begun, outcome, s.clock.Since(since))
	case ctx.Err() == nil:
		unrecorded.Inc()
		klog.FromContext(ctx).Error(err, "Failed to record the outcome of a sync, repeating it", "environment", klog.KObj(begun.Environment))
		return redoPause
	}
	return 0
}

// undo takes back a start, and enqueues the environments that can start because of that.
func (s *starter) undo(name types.NamespacedName) {
	for _, other := range s.starts.undo(name) {
		s.queue.Add(other)
	}
}

// leaveQueue removes an environment from the start queue, and enqueues those that can start because of that.
func (s *starter) leaveQueue(name types.NamespacedName) {
	for _, other := range s.starts.leave(name) {
		s.queue.Add(other)
	}
}
