// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/signature"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

const (
	// A failing branch is retried after retryMin, doubling up to retryMax, with a tenth of jitter.
	retryMin = time.Second
	retryMax = 5 * time.Minute
	// remotePatience is how long a remote may take for one request before it counts as unreachable. Without it a remote
	// that accepts a connection and sends nothing would block the branch and a worker slot forever.
	remotePatience = 2 * time.Minute
	// largeOperations bounds how many operations on remotes that need much memory run at the same time: users choose the
	// remotes, and each operation may take as much as --git-max-memory-mib.
	largeOperations = 2
	// pollInterval is how often a remote is polled without a trigger.
	pollInterval = time.Minute
)

// branchServices are the dependencies of workers. All workers share them.
type branchServices struct {
	outbox *outbox.Outbox
	pushes *pushLog
	// landings records the commits of objects; nil if they are not recorded.
	landings Landings
	lister   lister
	identity Identity
	limits   Limits
	// remote returns the remote of the branch with its current credentials.
	remote func(context.Context, branchKey) (*gitrepo.Remote, error)
	// signer returns the signer of commits with the current key; nil if they are not signed.
	signer func(context.Context, *v1alpha1.GitRepoConfig) (signature.Signer, error)
	// retry is the delay after the first error.
	retry time.Duration
	// pollInterval is how often the remote is polled without a trigger.
	pollInterval time.Duration
	// running reports whether every watch that a destination needs for a type has synced; starting reports whether one has
	// neither synced nor failed.
	running, starting func(*destinationPlan, schema.GroupVersionResource) bool
	namespaces        namespaceLookup
	// recheck requests a check of a GitRepoConfig whose condition may have changed.
	recheck func(types.NamespacedName)
	// writes reports whether the destination with the name writes a folder of a branch.
	writes func(name types.NamespacedName, branch, folder string) bool
	// author returns the author of a change that a comparison has found, if that is certain.
	author func(attribution.Event) attribution.Author
	// leases returns the Lease of a branch.
	leases func(branchKey) *branchLease
	// event records an Event of a destination: eventType is Normal or Warning.
	event func(destination *v1alpha1.GitDestination, eventType, reason, message string)
	// changed requests an update of conditions.
	changed func()
	slots   *slots
}

// lister lists the objects of a watch.
type lister interface {
	List(ctx context.Context, w watch.Watch, each func(*unstructured.Unstructured) error) (resourceVersion string, err error)
}

// worker serves one branch and is its only writer.
type worker struct {
	key      branchKey
	services *branchServices

	// destinations are the destinations on the branch. The controller replaces them.
	destinations atomic.Pointer[[]*destination]
	// wake signals that there may be work. reset ends the backoff, because the configuration of the branch has changed.
	wake, reset chan struct{}

	health health

	// The fields below are only accessed by run.
	lease  *branchLease
	slot   *branchSlot
	remote *gitrepo.Remote
	branch *gitrepo.Branch
	// wording renders commits. It is constant, because a worker belongs to one generation of the configuration.
	wording *wording
	// sign is nil if the configuration requests no signatures.
	sign signature.Signer
	// stale is set if the remote may have moved since the branch was read.
	stale  bool
	pushes *pushes
	// pollAt is when the remote is polled without a trigger: other writers may have changed a folder, or the credentials may
	// have been revoked.
	pollAt time.Time
	// folders are the folders that branch was loaded with. places has the state in which each destination's folder was left.
	folders  []string
	places   map[*destination]place
	markers  *markers
	batching *batching
	refusals *refusals
	// writing are the members that owned their folder in the last cycle.
	writing []member
	// first is the index of the destination whose rows go first in the next push.
	first int
	race  *race
}

// member is a destination with the plan that one cycle serves it by. The controller may replace a destination's plan at any
// time; a cycle uses the one it started with.
type member struct {
	destination *destination
	plan        *destinationPlan
}

// place is the state in which the worker left a destination's folder.
type place struct {
	folder string
	hash   gitrepo.Hash
}

func newWorker(key branchKey, services *branchServices) *worker {
	race := newRace()
	return &worker{
		key: key, services: services, wake: make(chan struct{}, 1), reset: make(chan struct{}, 1),
		health: health{branch: key.branch, recheck: func() { services.recheck(key.repository) }},
		lease:  services.leases(key), places: map[*destination]place{}, markers: newMarkers(services),
		pushes:   &pushes{key: key, log: services.pushes, index: services.landings},
		batching: &batching{limits: services.limits, race: race}, refusals: newRefusals(services.retry), race: race,
	}
}

// signal sends to a channel of capacity one unless a signal is pending.
func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// run serves the branch until ctx ends. Errors are recorded with the destinations, and the work is retried.
func (w *worker) run(ctx context.Context) {
	logger := klog.FromContext(ctx).WithValues("repository", w.key.repository.String(), "branch", w.key.branch)
	ctx = klog.NewContext(ctx, logger)
	defer w.closeRemote()
	defer w.lease.release(ctx)
	backoff := newBackoff(w.services.retry)
	var held leaseHeldError
	var rejected *rejectedError
	for ctx.Err() == nil {
		again, err := w.cycle(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			w.updateHealth()
			backoff = newBackoff(w.services.retry)
			if w.sleep(ctx, again, w.wake) {
				w.refusals.retryAll()
			}
		case errors.Is(err, gitrepo.ErrMoved):
			w.stale = true
			next := time.Now().Add(w.race.lost())
			w.report(err, next)
			w.sleep(ctx, next, nil)
		case errors.As(err, &held):
			w.stale = true
			w.report(err, held.until)
			w.sleep(ctx, held.until, nil)
		case errors.As(err, &rejected):
			w.invalidate(err)
			w.refusals.record(ctx, rejected) // The others are served at once.
			w.services.changed()
			w.updateHealth()
		default:
			w.invalidate(err)
			w.health.setPushed(err)
			delay := backoff.Step()
			logger.Error(err, "Failed to serve branch", "retryAfter", delay.Round(time.Millisecond))
			next := time.Now().Add(delay)
			w.report(err, next)
			w.health.setFailing(true)
			if w.sleep(ctx, next, nil) {
				backoff = newBackoff(w.services.retry)
				w.refusals.retryAll()
			}
		}
	}
}

// closeRemote closes the remote.
func (w *worker) closeRemote() {
	if w.remote != nil {
		w.remote.Close()
	}
}

// invalidate invalidates the state of the branch after an error. The next cycle refreshes it with the current credentials,
// which also drops staged commits. If the remote rejected the credentials or the response was not valid, the branch is
// loaded again.
func (w *worker) invalidate(err error) {
	w.stale, w.pollAt = true, time.Time{}
	var git *gitrepo.Error
	if !errors.As(err, &git) {
		return
	}
	switch git.Kind {
	case gitrepo.Unauthorized, gitrepo.NotFound, gitrepo.Invalid, gitrepo.Protocol, gitrepo.TooLarge:
		w.branch = nil
	case gitrepo.Unreachable, gitrepo.Rejected:
	}
}

// updateHealth records whether the branch is served: it is not while the remote rejects the files of every destination.
func (w *worker) updateHealth() {
	rejected := w.refusals.ofAll(w.writing)
	w.health.setPushed(rejected)
	w.health.setFailing(rejected != nil)
}

func newBackoff(first time.Duration) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Jitter: 0.1, Steps: 30, Cap: retryMax}
}

// sleep waits until a time (unless zero), for a reset, or for wake if it is not nil. It reports whether a reset ended it.
func (w *worker) sleep(ctx context.Context, until time.Time, wake <-chan struct{}) (reset bool) {
	var timer <-chan time.Time
	if !until.IsZero() {
		timer = time.After(time.Until(until))
	}
	select {
	case <-timer:
	case <-wake:
	case <-w.reset:
		return true
	case <-ctx.Done():
	}
	return false
}

// cycle does all pending work of the branch. It returns the time of the next cycle; zero means that only a wake-up starts
// one.
func (w *worker) cycle(ctx context.Context) (time.Time, error) {
	members := w.members()
	if len(members) == 0 {
		w.writing = nil
		return time.Time{}, nil
	}
	var err error
	if w.slot, err = w.services.slots.acquire(ctx, w.key); err != nil {
		return time.Time{}, err
	}
	defer w.slot.release()
	if err := w.open(ctx, members); err != nil {
		return time.Time{}, err
	}
	if w.writing, err = w.claim(ctx, members); err != nil {
		return time.Time{}, err
	}
	members, next := w.refusals.able(w.writing)
	if len(members) == 0 {
		return earliest(w.pollAt, next), nil
	}
	// Rows are pushed before a comparison, because its commits would replace theirs and lose their authors. Rows that arrive
	// meanwhile are pushed after it, so that they cannot starve the comparison.
	for more := true; more; {
		if err := w.pushWaiting(ctx, members); err != nil {
			return time.Time{}, err
		}
		if err := w.pushDeposits(ctx, members); err != nil {
			return time.Time{}, err
		}
		if more, err = w.compareNext(ctx, members); err != nil {
			return time.Time{}, err
		}
		if err := w.slot.giveWay(ctx); err != nil {
			return time.Time{}, err
		}
	}
	w.settled(members)
	return earliest(w.due(members), next), nil
}

// earliest returns the earlier of two times. Zero times are ignored.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// all returns the destinations on the branch, including those that are not active.
func (w *worker) all() []*destination {
	if all := w.destinations.Load(); all != nil {
		return *all
	}
	return nil
}

// members returns the active destinations.
func (w *worker) members() []member {
	var members []member
	for _, d := range w.all() {
		if p := d.plan.Load(); p.active() && p.branch == w.key {
			members = append(members, member{destination: d, plan: p})
		}
	}
	return members
}

// due returns the time of the next cycle; zero means that only a wake-up starts one.
func (w *worker) due(members []member) time.Time {
	if backlogOf(members).Rows > 0 && w.batching.until.IsZero() {
		return time.Now()
	}
	due := earliest(w.batching.until, w.pollAt)
	for _, m := range members {
		at, sweep := m.destination.seeds.next()
		due = earliest(due, at)
		if sweep && !m.plan.held && time.Now().Before(m.destination.sweepableAt(m.plan)) {
			due = earliest(due, m.destination.sweepableAt(m.plan))
		}
	}
	return due
}

// report records an error with all members.
func (w *worker) report(err error, next time.Time) {
	countRetry(err)
	for _, m := range w.members() {
		m.destination.record.failed(err, next)
		m.destination.failDeposits(err)
	}
	w.services.changed()
}

// settled records the success of a cycle with the members.
func (w *worker) settled(members []member) {
	for _, m := range members {
		w.refusals.accepted(m.destination)
		if m.destination.record.succeeded() {
			w.services.changed()
		}
	}
}
