// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

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
