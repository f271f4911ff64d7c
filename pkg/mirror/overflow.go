// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

const (
	// maxBacklogRows and maxBacklogBytes limit the changes of one destination that wait in the outbox, and the size of their files. Users
	// can suspend a destination, or choose a remote that never responds, and the outbox shares its volume, or etcd's quota, with the API
	// objects of everyone. Both are far beyond what waits between two pushes, and a destination at the limit needs about 20 MiB of memory.
	maxBacklogRows  = 20_000
	maxBacklogBytes = 64 << 20
)

// backlogLimit limits the changes of one destination that wait in the outbox.
type backlogLimit struct{ rows, bytes int }

// reached reports whether no further change may wait.
func (l backlogLimit) reached(waiting outbox.Backlog) bool {
	return waiting.Rows >= l.rows || waiting.Bytes >= l.bytes
}

// overflow is the state of a destination whose backlog has reached its limit. Its rows are dropped, and comparisons with the cluster write
// the same content, but neither the intermediate states nor all authors.
//
// No change is lost. Every refused change requests a comparison after it was refused, and the overflow requests one of everything before
// rows are removed. These requests are in memory only, because a process compares everything when it starts, whichever rows it finds.
type overflow struct {
	mu sync.Mutex
	// closed is set while changes are refused.
	closed bool
	// through is the last sequence of the rows that must be removed from the outbox; zero if there are none.
	through uint64
	// oldest is when the oldest dropped change was seen; zero once everything has been compared.
	oldest time.Time
}

// refuse reports whether a change of the destination is refused and compared instead, and whether the overflow begins with it.
func (d *destination) refuse(change outbox.Change, limit backlogLimit) (refused, begins bool) {
	o := &d.overflow
	o.mu.Lock()
	defer o.mu.Unlock()
	if waiting := d.queue.Backlog(); !o.closed && limit.reached(waiting) {
		o.closed, o.through, o.oldest, begins = true, d.queue.Counted(), earliest(o.oldest, waiting.Oldest), true
		d.seeds.invalidateAll()
	}
	if o.closed {
		d.seeds.invalidateNamespace(change.Object.GroupVersionResource(), change.Object.Namespace)
	}
	return o.closed, begins
}

// acceptChanges ends the refusal of changes if the rows have been removed. The branch is being served, and comparisons are next. If changes
// were refused until they have succeeded, continuous changes would request further ones forever.
func (d *destination) acceptChanges() {
	d.overflow.mu.Lock()
	defer d.overflow.mu.Unlock()
	d.overflow.closed = d.overflow.closed && d.overflow.through > 0
}

// endOverflow records that comparisons have replaced the dropped changes, once none is outstanding. It reports whether that is new.
func (d *destination) endOverflow() (ended bool) {
	d.overflow.mu.Lock()
	defer d.overflow.mu.Unlock()
	if d.overflow.closed || d.overflow.oldest.IsZero() || d.seeds.outstanding() {
		return false
	}
	d.overflow.oldest = time.Time{}
	return true
}

// rowsToRemove returns the last sequence of the rows to remove; zero if there are none.
func (o *overflow) rowsToRemove() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.through
}

// rowsRemoved records that the rows up to a sequence have been removed.
func (o *overflow) rowsRemoved(through uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.through == through {
		o.through = 0
	}
}

// droppedSince returns when the oldest dropped change was seen that no comparison has replaced yet; zero if there is none.
func (d *destination) droppedSince() time.Time {
	d.overflow.mu.Lock()
	defer d.overflow.mu.Unlock()
	return d.overflow.oldest
}

// oldestWaiting returns when the oldest change was seen that is not on the branch yet; zero if there is none.
func (d *destination) oldestWaiting() time.Time {
	return earliest(d.queue.Backlog().Oldest, d.droppedSince())
}

// refuse reports whether a change of the destination is refused and compared instead.
func (r *router) refuse(ctx context.Context, d *destination, change outbox.Change) bool {
	refused, begins := d.refuse(change, r.limit)
	if begins {
		klog.FromContext(ctx).Info("Too many changes wait, dropping them and comparing with the cluster instead", "destination", d.key,
			"maxChanges", r.limit.rows, "maxBytes", r.limit.bytes)
	}
	if refused {
		r.refused(d, begins)
	}
	return refused
}

// refused requests what follows a refused change. If an overflow begins with it, the next plan removes the rows.
func (r *registry) refused(d *destination, begins bool) {
	p := d.plan.Load()
	if begins {
		backlogOverflows.Inc()
		r.services.event(p.object, corev1.EventTypeWarning, reasonBacklogLimitReached, fmt.Sprintf(
			"%d changes or %d MiB wait for branch %s, and no more are kept. They are dropped, and the branch is compared with the cluster "+
				"when it is written again: no content is lost, but commits between and their authors are. The condition Ready shows why changes wait",
			r.router.limit.rows, r.router.limit.bytes>>20, p.object.Spec.Branch))
		signal(r.replan)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake(p.branch)
	signal(r.publish)
}

// removeOverflows removes the rows of destinations whose backlog has reached its limit. Rows that became durable later stay.
func (r *registry) removeOverflows(ctx context.Context) error {
	for _, d := range r.all() {
		through := d.overflow.rowsToRemove()
		if through == 0 {
			continue
		}
		if err := r.services.outbox.RemoveThrough(ctx, d.uid, through); err != nil {
			return err
		}
		d.queue.Gone(through)
		d.overflow.rowsRemoved(through)
		r.mu.Lock()
		r.wake(d.plan.Load().branch)
		r.mu.Unlock()
		signal(r.publish)
	}
	return nil
}
