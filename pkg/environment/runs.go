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

// runs are the syncs in progress, at most one for each environment.
type runs struct {
	mu    sync.Mutex
	group sync.WaitGroup
	// cancels cancels them.
	cancels map[types.NamespacedName]context.CancelFunc
	// ended counts the ended syncs of each environment.
	ended map[types.UID]int
}

func newRuns() *runs {
	return &runs{cancels: map[types.NamespacedName]context.CancelFunc{}, ended: map[types.UID]int{}}
}

// has reports whether a sync of an environment is in progress.
func (r *runs) has(name types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancels[name] != nil
}

// count returns how many syncs of an environment have ended.
func (r *runs) count(uid types.UID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended[uid]
}

// cancel cancels the sync of an environment, if there is one. It does not wait for it.
func (r *runs) cancel(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.cancels[name]; cancel != nil {
		cancel()
	}
}

// begin runs work for an environment without a sync in a goroutine, and calls ended afterwards.
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

// forget drops the counter of a deleted environment.
func (r *runs) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ended, uid)
}

// wait blocks until all syncs have ended.
func (r *runs) wait() { r.group.Wait() }

// redoPause is the delay before a job whose outcome could not be recorded is executed again.
const redoPause = 5 * time.Second

// begin starts a job in the background.
func (c *environments) begin(ctx context.Context, begun syncer.Job) {
	name, pause := nameOf(begun.Environment), time.Duration(0)
	c.runs.begin(ctx, begun.Environment, func(ctx context.Context) {
		pause = c.execute(ctx, begun)
		// The sync still counts as in progress here, so the environment itself does not start the next one.
		for _, next := range c.starts.end(name) {
			c.queue.Add(next)
		}
	}, func() { c.queue.AddAfter(name, pause) })
}

// execute executes a job, and returns the delay before the next reconcile.
func (c *environments) execute(ctx context.Context, begun syncer.Job) (pause time.Duration) {
	since := c.shared.Clock.Now()
	outcome, err := c.executor.Execute(ctx, begun)
	switch {
	case err == nil:
		measure(begun, outcome, c.shared.Clock.Since(since))
	case ctx.Err() == nil:
		unrecorded.Inc()
		klog.FromContext(ctx).Error(err, "Failed to record the outcome of a sync, repeating it", "environment", klog.KObj(begun.Environment))
		return redoPause
	}
	return 0
}
