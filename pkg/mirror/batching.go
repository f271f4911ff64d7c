// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"math"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// busyInterval is the minimum time between pushes while changes keep arriving and pushes carry several. A Git server starts
// half a dozen processes for each push, and writes the objects of small pushes as single files.
const busyInterval = 250 * time.Millisecond

// batching decides how long the rows of a branch are held back, so that several share a push.
type batching struct {
	limits Limits
	race   *race
	// until is until when rows are held back; zero if the next row is pushed at once.
	until time.Time
}

// holds reports whether rows are held back. The first change after an idle time is pushed at once. While changes keep arriving, the next
// push waits for as long as the last one took, so that at most half of the time is spent pushing, or for busyInterval, and at most for the
// limit.
func (b *batching) holds(members []member) bool {
	if !b.until.IsZero() && (b.full(members) || !time.Now().Before(b.until)) {
		b.until = time.Time{}
	}
	return !b.until.IsZero()
}

// pushed sets how long rows are held back after a push that settled some rows and took some time.
func (b *batching) pushed(members []member, settled int, took time.Duration) {
	switch pending := backlogOf(members).Rows; {
	case settled == 0:
		// The counted rows are being removed, because their destination was deleted.
		b.until = time.Now().Add(retryMin)
	case pending > 0 && !b.full(members):
		if settled > 1 {
			took = max(took, busyInterval)
		}
		b.until = time.Now().Add(min(took, b.maxWait(members[0])))
	default:
		b.until = time.Time{}
	}
}

// full reports whether the backlog fills a push.
func (b *batching) full(members []member) bool {
	pending := backlogOf(members)
	return pending.Rows >= b.race.bound(min(b.limits.MaxFiles, maxCommits(members[0]))) || pending.Bytes >= b.limits.MaxBytes
}

// maxWait returns the maximum time for which a row is held back.
func (b *batching) maxWait(m member) time.Duration {
	if policy := m.plan.repository.Spec.Push; policy != nil && policy.Interval != nil {
		return policy.Interval.Duration
	}
	return b.limits.MaxWait
}

// maxCommits returns the maximum number of commits of one push. It is the same for all members, because a branch belongs to
// one repository configuration.
func maxCommits(m member) int {
	if policy := m.plan.repository.Spec.Push; policy != nil && policy.MaxCommits != nil {
		return int(*policy.MaxCommits)
	}
	return math.MaxInt
}

// backlogOf returns the sum of the members' backlogs.
func backlogOf(members []member) outbox.Backlog {
	var sum outbox.Backlog
	for _, m := range members {
		one := m.destination.queue.Backlog()
		sum.Rows += one.Rows
		sum.Bytes += one.Bytes
	}
	return sum
}
