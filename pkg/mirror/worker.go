// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
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
)

const (
	// A branch that cannot be read or written is tried again after retryMin, doubling up
	// to retryMax, with a tenth of jitter.
	retryMin = time.Second
	retryMax = 5 * time.Minute
	// remotePatience is how long a remote may take for one request before it counts as
	// unreachable: one that accepts a connection and then says nothing would hold the
	// branch, and its place among those that are written at once, for good.
	remotePatience = 2 * time.Minute
	// largeOperations is how many operations on remotes may need more than a little memory at the same time: users name
	// the remotes, and each may take as much as --git-max-memory-mib.
	largeOperations = 2
	// lookInterval is how often a remote is looked at without cause.
	lookInterval = time.Minute
)

// branchServices is what a worker needs of the rest of the mirror.
type branchServices struct {
	outbox *Outbox
	pushes *pushLog
	// landings are told what pushes bring; nil: nobody is.
	landings Landings
	lister   lister
	identity Identity
	limits   Limits
	// remote returns how the branch is reached, with the credentials as they are now.
	remote func(context.Context, branchKey) (*gitrepo.Remote, error)
	// signer returns what signs commits, by the key as it is now; nil when they are not signed.
	signer func(context.Context, *v1alpha1.GitRepoConfig) (signature.Signer, error)
	// retry is the wait after a first error.
	retry time.Duration
	// lookInterval is how often the remote is looked at without cause.
	lookInterval time.Duration
	// running says whether every watch that a destination needs for a type delivers, starting whether one does not that
	// has not failed either.
	running, starting func(*destinationPlan, schema.GroupVersionResource) bool
	namespaces        namespaceLookup
	// recheck is called when something has changed that the condition of a GitRepoConfig tells.
	recheck func(types.NamespacedName)
	// writes says whether a destination writes a folder of a branch of that name.
	writes func(name types.NamespacedName, branch, folder string) bool
	// author tells who made what a comparison has found, if that is certain.
	author func(attribution.Event) attribution.Author
	// leases returns the Lease of a branch.
	leases func(branchKey) *branchLease
	// event makes an Event about a destination: eventType is Normal or Warning.
	event func(destination *v1alpha1.GitDestination, eventType, reason, message string)
	// changed is called when something that conditions tell has changed.
	changed func()
	slots   *slots
}

// lister lists the objects that a watch covers.
type lister interface {
	List(ctx context.Context, w watch.Watch, each func(*unstructured.Unstructured) error) (resourceVersion string, err error)
}

// worker is the only writer of one branch.
type worker struct {
	key      branchKey
	services *branchServices

	// destinations are those on the branch. The controller replaces them.
	destinations atomic.Pointer[[]*destination]
	// wake says that there may be something to do, reset that a retry need not wait:
	// something about the branch's configuration has changed.
	wake, reset chan struct{}

	// rejection is why the remote refused what was last pushed; nil if it did not.
	rejection atomic.Pointer[string]
	// failing says that the branch cannot be served and is tried again later.
	failing atomic.Bool

	// The rest belongs to run.
	lease  *branchLease
	slot   *branchSlot
	remote *gitrepo.Remote
	branch *gitrepo.Branch
	// wording is the same for as long as the worker is, for it belongs to one generation of the configuration.
	wording *wording
	// sign is nil when the configuration asks for no signatures.
	sign signature.Signer
	// stale says that the remote may not be where the branch believes it is.
	stale bool
	// doubts are the pushes that may have landed, or may yet, although their rows are still
	// there, the oldest first; doubtsRead says that those of an earlier process are among them.
	doubts     []pushNote
	doubtsRead bool
	// compared is what has been compared lately.
	compared []comparedScope
	// lookAt is when the remote is looked at although nothing is known to have changed:
	// other people may have changed a folder, or the credentials may have been taken back.
	lookAt time.Time
	// folders are those of the branch that have been read, for the members of then; places
	// tell how each destination's folder was left when it was last among the members.
	folders []string
	places  map[*destination]place
	// markers are those of the members' folders, by their blobs; nested are the paths of those of folders within them.
	markers map[gitrepo.Hash]foundMarker
	nested  map[*destination][]string
	// gatherUntil holds rows back for company; zero when the next row is pushed at once.
	gatherUntil time.Time
	// writing are the members that may write, as of the last cycle; refusals are those that were in refused pushes.
	writing  []member
	refusals map[*destination]*refusal
	// first is the place among the destinations of the one whose rows go first next time.
	first int
	race  race
}

// member is a destination with the plan by which one cycle serves it. The controller may
// replace a destination's plan at any time; what is begun by one is ended by it.
type member struct {
	*destination
	plan *destinationPlan
}

// place is a destination's folder as the worker has left it.
type place struct {
	folder string
	hash   gitrepo.Hash
}

func newWorker(key branchKey, services *branchServices) *worker {
	return &worker{
		key: key, services: services, wake: make(chan struct{}, 1), reset: make(chan struct{}, 1),
		lease: services.leases(key), places: map[*destination]place{}, nested: map[*destination][]string{}, refusals: map[*destination]*refusal{},
		race: newRace(),
	}
}

// signal leaves one token in a channel of length one.
func signal(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// run serves the branch until ctx ends. Errors end nothing: they are shown in the
// destinations' records and the work is tried again.
func (w *worker) run(ctx context.Context) {
	logger := klog.FromContext(ctx).WithValues("repository", w.key.repository.String(), "branch", w.key.branch)
	ctx = klog.NewContext(ctx, logger)
	defer w.leave()
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
			w.judge()
			backoff = newBackoff(w.services.retry)
			if w.sleep(ctx, again, w.wake) {
				w.tryRefused()
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
			w.distrust(err)
			w.isolate(ctx, rejected) // the others are served at once
			w.judge()
		default:
			w.distrust(err)
			w.accepted(err)
			delay := backoff.Step()
			logger.Error(err, "Branch cannot be served", "retryAfter", delay.Round(time.Millisecond))
			next := time.Now().Add(delay)
			w.report(err, next)
			w.fails(true)
			if w.sleep(ctx, next, nil) {
				backoff = newBackoff(w.services.retry)
				w.tryRefused()
			}
		}
	}
}

// leave gives up what the worker holds.
func (w *worker) leave() {
	if w.remote != nil {
		w.remote.Close()
	}
}

// distrust decides what is left of the branch after an error. Its tip is looked up again,
// with the credentials of then, which also forgets what was staged. Where the remote did not
// take us for who we are, or did not speak as Git does, the branch is read anew.
func (w *worker) distrust(err error) {
	w.stale, w.lookAt = true, time.Time{}
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

// accepted notes whether the remote takes what is pushed, by how serving the branch has ended. That it refuses, as
// hooks and protected branches do, concerns the whole repository: looking at it does not show it.
func (w *worker) accepted(err error) {
	var rejection *string
	var git *gitrepo.Error
	if errors.As(err, &git) && git.Kind == gitrepo.Rejected {
		text := fmt.Sprintf("branch %s: %s", w.key.branch, git)
		rejection = &text
	}
	before := w.rejection.Swap(rejection)
	if (before == nil) != (rejection == nil) || before != nil && *before != *rejection {
		w.services.recheck(w.key.repository)
	}
}

// fails notes whether the branch can be served. The repository is looked at when that changes: it was ready when it was
// last, or was not, and the next look is minutes away.
func (w *worker) fails(failing bool) {
	if w.failing.Swap(failing) != failing {
		w.services.recheck(w.key.repository)
	}
}

// judge notes whether the branch is served: it is not while the remote refuses what every destination has.
func (w *worker) judge() {
	refused := w.refusedBranch()
	w.accepted(refused)
	w.fails(refused != nil)
}

func newBackoff(first time.Duration) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Jitter: 0.1, Steps: 30, Cap: retryMax}
}

// sleep waits for a time (zero: none), a reset, or a wake-up where one is given. It returns
// whether a reset has ended it.
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

// cycle does what there is to do now and returns when it has to be called again at the
// latest; zero: when woken.
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
	members, next := w.able(w.writing)
	if len(members) == 0 {
		return earliest(w.lookAt, next), nil
	}
	// Rows come before a comparison, which would take their authors away; those that come
	// meanwhile come after it, so that a comparison has its turn however many there are.
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

// earliest returns the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// all returns the destinations on the branch, also those that are not written now.
func (w *worker) all() []*destination {
	if all := w.destinations.Load(); all != nil {
		return *all
	}
	return nil
}

// members returns the destinations that are written now.
func (w *worker) members() []member {
	var members []member
	for _, d := range w.all() {
		if p := d.plan.Load(); p.active() && p.branch == w.key {
			members = append(members, member{destination: d, plan: p})
		}
	}
	return members
}

// backlog is what waits of all members.
func (w *worker) backlog(members []member) backlog {
	var sum backlog
	for _, m := range members {
		one := m.queue.backlog()
		sum.rows += one.rows
		sum.bytes += one.bytes
	}
	return sum
}

// due returns when the worker has to look again if nobody wakes it; zero: never.
func (w *worker) due(members []member) time.Time {
	if w.backlog(members).rows > 0 && w.gatherUntil.IsZero() {
		return time.Now()
	}
	due := earliest(w.gatherUntil, w.lookAt)
	for _, m := range members {
		at, sweep := m.seeds.next()
		due = earliest(due, at)
		if sweep && !m.plan.held && time.Now().Before(m.sweepableAt(m.plan)) {
			due = earliest(due, m.sweepableAt(m.plan))
		}
	}
	return due
}

// report shows an error in the records of all destinations of the branch.
func (w *worker) report(err error, next time.Time) {
	countRetry(err)
	for _, m := range w.members() {
		m.record.failed(err, next)
		m.failDeposits(err)
	}
	w.services.changed()
}

// settled shows that nothing keeps the destinations back.
func (w *worker) settled(members []member) {
	for _, m := range members {
		w.released(m.destination)
		if m.record.succeeded() {
			w.services.changed()
		}
	}
}
