// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// rowPusher pushes the rows in the outbox.
type rowPusher struct {
	outbox   *outbox.Outbox
	limits   Limits
	race     *race
	batching *batching
	refusals *refusals
	stager   *stager
	pusher   *pusher
	// first is the index of the destination whose rows go first in the next push.
	first int
}

// pushWaiting pushes the rows that are in the outbox when it is called, unless they are held back to be batched.
func (r *rowPusher) pushWaiting(ctx context.Context, members []member, slot *branchSlot) error {
	for pending := backlogOf(members).Rows; pending > 0 && !r.batching.holds(members); {
		started := time.Now()
		settled, err := r.pushOldest(ctx, members, slot)
		if err != nil {
			return err
		}
		pending -= settled
		r.batching.pushed(members, settled, time.Since(started))
	}
	return nil
}

// pushOldest pushes the oldest rows of every member, as many as one push carries, and returns their number. Members that are
// pushed separately come last.
func (r *rowPusher) pushOldest(ctx context.Context, members []member, slot *branchSlot) (settled int, err error) {
	r.first++
	for _, group := range r.refusals.groups(members) {
		n, err := r.pushTogether(ctx, members, group)
		settled += n
		if err != nil {
			return settled, err
		}
		if err := slot.giveWay(ctx); err != nil {
			return settled, err
		}
	}
	return settled, nil
}

// pushTogether pushes the oldest rows of some of the members in one push.
func (r *rowPusher) pushTogether(ctx context.Context, all, members []member) (settled int, err error) {
	room, size, commits := r.race.bound(r.limits.MaxFiles), r.limits.MaxBytes, maxCommits(members[0])
	var batches []*batch
	for i := range members {
		// Members go first in rotation, so that a busy one does not starve the others.
		m := members[(r.first+i)%len(members)]
		if room <= 0 || size <= 0 || commits <= 0 {
			break
		}
		counted := m.destination.queue.Counted()
		rows, err := r.outbox.Next(ctx, m.destination.uid, m.destination.queue.Fitting(room, size), size)
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			m.destination.queue.Gone(counted)
			continue
		}
		b := &batch{member: m}
		if err := r.stager.stageRows(b, rows, commits); err != nil {
			return 0, err
		}
		room -= len(b.rows)
		for _, row := range b.rows {
			size -= len(row.Change.Content)
		}
		commits -= b.pushed.commits
		settled += len(b.rows)
		batches = append(batches, b)
	}
	return settled, r.pusher.push(ctx, all, batches)
}
