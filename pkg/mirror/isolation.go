// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// A remote may reject the files of one destination and accept those of all others on the branch: a hook checks paths, a
// server checks objects. So a rejected push with the files of several destinations is repeated for each destination alone.
// A destination whose own push is rejected is held: its rows stay in the outbox, in order, and are retried later. The others
// continue together. This state is not persisted. If a server closes the connection or returns another error, nothing was
// rejected: the whole branch is retried.

// rejectedError is returned for a push that the remote has rejected, or for a commit that could not be built, with the
// members whose files were in it.
type rejectedError struct {
	error
	members []member
}

func (e *rejectedError) Unwrap() error { return e.error }

// rejectedPush returns a rejectedError with the members of a push if the remote has rejected its content.
func rejectedPush(err error, batches []*batch) error {
	var git *gitrepo.Error
	if !errors.As(err, &git) || git.Kind != gitrepo.Rejected {
		return err
	}
	rejected := &rejectedError{error: err}
	for _, b := range batches {
		if b.pushed.commits > 0 {
			rejected.members = append(rejected.members, b.member)
		}
	}
	return rejected
}

// refusal is the state of a destination that was in a rejected push.
type refusal struct {
	// err is the error of the destination's own push; nil before there was one, and after one was accepted.
	err error
	// until is the time of the next retry. A change of the destination's generation retries at once.
	until      time.Time
	generation int64
	backoff    wait.Backoff
	// apartUntil is until when the destination is pushed separately although its pushes are accepted: a destination whose
	// files are rejected now and then does not get the pushes of the others rejected each time.
	apartUntil time.Time
}

// apart reports whether the destination is pushed separately.
func (r *refusal) apart() bool {
	return r != nil && (r.err != nil || time.Now().Before(r.apartUntil))
}

// refusals has the destinations of a branch whose pushes were rejected.
type refusals struct {
	// retry is the delay after the first rejection.
	retry time.Duration
	of    map[*destination]*refusal
}

func newRefusals(retry time.Duration) *refusals {
	return &refusals{retry: retry, of: map[*destination]*refusal{}}
}

// record records the members of a rejected push. If there is only one, it is held until its next retry.
func (f *refusals) record(ctx context.Context, rejected *rejectedError) {
	for _, m := range rejected.members {
		d := m.destination
		r := f.of[d]
		if r == nil {
			r = &refusal{backoff: newBackoff(f.retry)}
			f.of[d] = r
		}
		r.apartUntil = time.Now().Add(retryMax)
		if len(rejected.members) > 1 {
			continue
		}
		delay := r.backoff.Step()
		r.err, r.until, r.generation = rejected.error, time.Now().Add(delay), m.plan.object.Generation
		klog.FromContext(ctx).Error(rejected.error, "Remote rejected the files of the destination",
			"destination", d.key, "retryAfter", delay.Round(time.Millisecond))
		countRetry(rejected.error)
		d.record.failed(rejected.error, r.until)
		d.failDeposits(rejected.error)
	}
}

// able returns the members that are not held, and the time of the first retry of the others; zero if none is held.
func (f *refusals) able(members []member) (able []member, next time.Time) {
	for _, m := range members {
		r := f.of[m.destination]
		if r == nil || r.err == nil || !time.Now().Before(r.until) || r.generation != m.plan.object.Generation {
			able = append(able, m)
			continue
		}
		next = earliest(next, r.until)
		m.destination.record.refuses(r.err, r.until)
	}
	return able, next
}

// accepted records that the files of a destination are accepted again.
func (f *refusals) accepted(d *destination) {
	r := f.of[d]
	if r == nil {
		return
	}
	if r.err = nil; !r.apart() {
		delete(f.of, d)
	}
}

// retryNow makes the retry of a held destination due.
func (f *refusals) retryNow(d *destination) {
	if r := f.of[d]; r != nil {
		r.until = time.Time{}
	}
}

// retryAll ends the backoff of all held destinations.
func (f *refusals) retryAll() {
	for _, r := range f.of {
		r.until, r.backoff = time.Time{}, newBackoff(f.retry)
	}
}

// ofAll returns an error if the remote rejects the files of all members, so that the branch may be the reason; nil if it accepts those of
// one, or has not rejected each.
func (f *refusals) ofAll(members []member) error {
	var err error
	for _, m := range members {
		r := f.of[m.destination]
		if r == nil || r.err == nil {
			return nil
		}
		err = r.err
	}
	return err
}

// groups divides members into groups that share pushes.
func (f *refusals) groups(members []member) [][]member {
	var together []member
	var groups [][]member
	for _, m := range members {
		if f.of[m.destination].apart() {
			groups = append(groups, []member{m})
		} else {
			together = append(together, m)
		}
	}
	if len(together) > 0 {
		groups = slices.Insert(groups, 0, together)
	}
	return groups
}

// retain drops all destinations but those given.
func (f *refusals) retain(destinations []*destination) {
	maps.DeleteFunc(f.of, func(d *destination, _ *refusal) bool { return !slices.Contains(destinations, d) })
}
