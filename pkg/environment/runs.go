// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"sync"
	"time"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// runs are those that go on, at most one of each environment.
type runs struct {
	mu    sync.Mutex
	group sync.WaitGroup
	// cancels end them early.
	cancels map[types.NamespacedName]context.CancelFunc
	// ended counts those of each environment that have come to an end.
	ended map[types.UID]int
}

func newRuns() *runs {
	return &runs{cancels: map[types.NamespacedName]context.CancelFunc{}, ended: map[types.UID]int{}}
}

// has says whether a run of an environment goes on.
func (r *runs) has(name types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancels[name] != nil
}

// count is how many runs of an environment have come to an end.
func (r *runs) count(uid types.UID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended[uid]
}

// cancel ends the run of an environment early, if there is one. It goes on for a moment.
func (r *runs) cancel(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.cancels[name]; cancel != nil {
		cancel()
	}
}

// begin does work for an environment that has no run, beside whoever calls it, and calls ended when it is done.
func (r *runs) begin(ctx context.Context, e *v1alpha1.Environment, work func(context.Context), ended func()) {
	name := nameOf(e)
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancels[name] = cancel
	r.group.Go(func() {
		work(ctx)
		r.end(e)
		ended()
	})
}

func (r *runs) end(e *v1alpha1.Environment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancels[nameOf(e)]()
	delete(r.cancels, nameOf(e))
	r.ended[e.UID]++
}

// forget lets go of an environment that is gone.
func (r *runs) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ended, uid)
}

// wait returns when no run goes on any more.
func (r *runs) wait() { r.group.Wait() }

// redoPause is how long a run waits of which it could not be recorded what came of it.
const redoPause = 5 * time.Second

// begin carries out a job that the line lets begin.
func (c *environments) begin(ctx context.Context, begun syncer.Job) {
	name, pause := nameOf(begun.Environment), time.Duration(0)
	c.runs.begin(ctx, begun.Environment, func(ctx context.Context) {
		pause = c.carryOut(ctx, begun)
		// While the run is said to go on, the environment does not ask to begin the next one.
		for _, next := range c.line.end(name) {
			c.queue.Add(next)
		}
	}, func() { c.queue.AddAfter(name, pause) })
}

// carryOut does a job, and says how long its environment is to be left alone then.
func (c *environments) carryOut(ctx context.Context, begun syncer.Job) (pause time.Duration) {
	since := c.shared.Clock.Now()
	outcome, err := c.jobs.Execute(ctx, begun)
	switch {
	case err == nil:
		measure(begun, outcome, c.shared.Clock.Since(since))
	case ctx.Err() == nil:
		unrecorded.Inc()
		klog.FromContext(ctx).Error(err, "What came of a sync could not be recorded, doing it again", "environment", klog.KObj(begun.Environment))
		return redoPause
	}
	return 0
}
