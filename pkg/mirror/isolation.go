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

// A remote may refuse the files of one destination and take those of all others on the branch: a hook looks at paths, a
// server checks objects. A push with the files of several destinations that is refused is therefore repeated for each
// destination alone. One whose own push is refused is held: its rows stay in the outbox, in their order, and are tried
// again later. The others continue together. All of it is found out anew by the next process. A server that breaks off
// instead, or answers with an error of its own, has refused nothing: that is tried again for the whole branch.

// rejectedError is a push that the remote has received and refused, or a commit that could not be made, with the
// members whose files were to be in it.
type rejectedError struct {
	error
	members []member
}

func (e *rejectedError) Unwrap() error { return e.error }

// rejectedPush marks the error of a push with the destinations that it was for, if the remote has refused what it holds.
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

// refusal is what a worker knows of a destination that was in a refused push.
type refusal struct {
	// err is why the destination's own push was refused; nil while it has made none, and once one was accepted.
	err error
	// until is when the next is made, unless the destination has another generation by then.
	until      time.Time
	generation int64
	backoff    wait.Backoff
	// apartUntil is how long the destination has pushes of its own, though none is refused: a destination whose files are
	// refused now and then does not have those of all others refused with them each time.
	apartUntil time.Time
}

// apart reports whether the destination has pushes of its own.
func (r *refusal) apart() bool {
	return r != nil && (r.err != nil || time.Now().Before(r.apartUntil))
}

// isolate notes who was in a refused push.
func (w *worker) isolate(ctx context.Context, rejected *rejectedError) {
	for _, m := range rejected.members {
		d := m.destination
		r := w.refusals[d]
		if r == nil {
			r = &refusal{backoff: newBackoff(w.services.retry)}
			w.refusals[d] = r
		}
		r.apartUntil = time.Now().Add(retryMax)
		if len(rejected.members) > 1 {
			continue
		}
		delay := r.backoff.Step()
		r.err, r.until, r.generation = rejected.error, time.Now().Add(delay), m.plan.object.Generation
		klog.FromContext(ctx).Error(rejected.error, "Destination is held, because its files are refused", "destination", d.key, "retryAfter", delay.Round(time.Millisecond))
		countRetry(rejected.error)
		d.record.failed(rejected.error, r.until)
		d.failDeposits(rejected.error)
	}
	w.services.changed()
}

// able returns the members that are not held, and when the first of the others is tried again; zero: none is held.
func (w *worker) able(members []member) (able []member, next time.Time) {
	for _, m := range members {
		r := w.refusals[m.destination]
		if r == nil || r.err == nil || !time.Now().Before(r.until) || r.generation != m.plan.object.Generation {
			able = append(able, m)
			continue
		}
		next = earliest(next, r.until)
		m.record.refuses(r.err, r.until)
	}
	return able, next
}

// released notes that nothing of a destination is refused any more.
func (w *worker) released(d *destination) {
	r := w.refusals[d]
	if r == nil {
		return
	}
	if r.err = nil; !r.apart() {
		delete(w.refusals, d)
	}
}

// tryRefused has every destination that is held tried now.
func (w *worker) tryRefused() {
	for _, r := range w.refusals {
		r.until, r.backoff = time.Time{}, newBackoff(w.services.retry)
	}
}

// refusedBranch returns why the remote refuses what all destinations on the branch have, so that the branch may be the
// reason; nil if it takes the files of one, or has not been asked.
func (w *worker) refusedBranch() error {
	var err error
	for _, m := range w.writing {
		r := w.refusals[m.destination]
		if r == nil || r.err == nil {
			return nil
		}
		err = r.err
	}
	return err
}

// groups divides members into those whose rows share pushes.
func (w *worker) groups(members []member) [][]member {
	var together []member
	var groups [][]member
	for _, m := range members {
		if w.refusals[m.destination].apart() {
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

// forgetRefusals lets go of destinations that are no longer on the branch.
func (w *worker) forgetRefusals() {
	all := w.all()
	maps.DeleteFunc(w.refusals, func(d *destination, _ *refusal) bool { return !slices.Contains(all, d) })
}
