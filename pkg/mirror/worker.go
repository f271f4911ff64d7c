// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/gitrepo"
	"github.com/configbutler/slipstream/pkg/source"
)

const (
	// A branch that cannot be read or written is tried again after retryMin, doubling up
	// to retryMax, with a tenth of jitter.
	retryMin = time.Second
	retryMax = 5 * time.Minute
	// movedRetry is the wait after another writer was faster.
	movedRetry = 20 * time.Millisecond
)

// branchServices is what a worker needs of the rest of the mirror.
type branchServices struct {
	outbox   *Outbox
	pushes   *pushLog
	lister   lister
	identity Identity
	limits   Limits
	// remote returns how the branch is reached, with the credentials as they are now.
	remote func(context.Context, branchKey) (*gitrepo.Remote, error)
	// running says whether every watch that a destination needs for a type delivers.
	running    func(*destinationPlan, schema.GroupVersionResource) bool
	namespaces namespaceLookup
	// changed is called when something that conditions tell has changed.
	changed func()
	// slots bounds the branches that are written at once.
	slots chan struct{}
}

// lister lists the objects that a watch covers.
type lister interface {
	List(ctx context.Context, w source.Watch, each func(*unstructured.Unstructured) error) (resourceVersion string, err error)
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

	// The rest belongs to run.
	branch *gitrepo.Branch
	// stale says that the remote may not be where the branch believes it is.
	stale bool
	// gatherUntil holds rows back for company; zero when the next row is pushed at once.
	gatherUntil time.Time
}

func newWorker(key branchKey, services *branchServices) *worker {
	return &worker{key: key, services: services, wake: make(chan struct{}, 1), reset: make(chan struct{}, 1)}
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
	backoff := newBackoff()
	for ctx.Err() == nil {
		again, err := w.cycle(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			backoff = newBackoff()
			w.sleep(ctx, again, w.wake)
		case errors.Is(err, gitrepo.ErrMoved):
			w.stale = true
			w.report(err)
			w.sleep(ctx, time.Now().Add(wait.Jitter(movedRetry, 1)), nil)
		default:
			w.distrust(err)
			delay := backoff.Step()
			logger.Error(err, "Branch cannot be served", "retryAfter", delay.Round(time.Millisecond))
			w.report(err)
			w.sleep(ctx, time.Now().Add(delay), nil)
		}
	}
}

// distrust decides what is left of the branch after an error: after one of the network the
// tip is looked up again, after any other the branch is read anew with the configuration
// and the credentials of then.
func (w *worker) distrust(err error) {
	w.stale = true
	var git *gitrepo.Error
	if !errors.As(err, &git) || git.Kind != gitrepo.Unreachable {
		w.branch = nil
	}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: retryMin, Factor: 2, Jitter: 0.1, Steps: 30, Cap: retryMax}
}

// sleep waits for a time (zero: none), a reset, or a wake-up where one is given.
func (w *worker) sleep(ctx context.Context, until time.Time, wake <-chan struct{}) {
	var timer <-chan time.Time
	if !until.IsZero() {
		timer = time.After(time.Until(until))
	}
	select {
	case <-timer:
	case <-wake:
	case <-w.reset:
	case <-ctx.Done():
	}
}

// cycle does what there is to do now and returns when it has to be called again at the
// latest; zero: when woken.
func (w *worker) cycle(ctx context.Context) (time.Time, error) {
	active := w.active()
	if len(active) == 0 {
		return time.Time{}, nil
	}
	release, err := w.acquire(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer release()
	if err := w.open(ctx, active); err != nil {
		return time.Time{}, err
	}
	for more := true; more; {
		if more, err = w.pushRows(ctx, active); err != nil {
			return time.Time{}, err
		}
	}
	if err := w.compare(ctx, active); err != nil {
		return time.Time{}, err
	}
	w.settled(active)
	return w.due(active), nil
}

// acquire takes one of the slots that all branches share.
func (w *worker) acquire(ctx context.Context) (release func(), err error) {
	select {
	case w.services.slots <- struct{}{}:
		return func() { <-w.services.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// active returns the destinations that are written now.
func (w *worker) active() []*destination {
	all := w.destinations.Load()
	if all == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(*all), func(d *destination) bool { return !d.plan.Load().active() })
}

// open reads the branch, or reads on if the remote may have moved.
func (w *worker) open(ctx context.Context, active []*destination) error {
	switch {
	case w.branch == nil:
		return w.load(ctx, active)
	case w.stale:
		return w.refresh(ctx, active)
	}
	for _, d := range active {
		if d.tree.Load() == nil {
			// The destination is new on this branch, and its folder may not have been read.
			return w.load(ctx, active)
		}
	}
	return nil
}

func (w *worker) load(ctx context.Context, active []*destination) error {
	remote, err := w.services.remote(ctx, w.key)
	if err != nil {
		return err
	}
	folders := make([]string, len(active))
	for i, d := range active {
		folders[i] = d.plan.Load().object.Spec.BaseFolder
	}
	// Check comes first, because some servers make a repository for the first who may write it.
	if err := remote.Check(ctx); err != nil {
		return err
	}
	branch, err := gitrepo.Load(ctx, remote, w.key.branch, gitrepo.Options{ManagedFolders: folders})
	if err != nil {
		return err
	}
	w.branch, w.stale = branch, false
	if err := w.recoverPush(ctx, active); err != nil {
		w.branch = nil
		return err
	}
	for _, d := range active {
		d.seeds.invalidateAll()
	}
	w.show(active)
	return nil
}

// refresh follows a remote that has moved. What other writers did to a managed folder is
// undone by comparing the folder with the cluster again.
func (w *worker) refresh(ctx context.Context, active []*destination) error {
	before := make([]gitrepo.Hash, len(active))
	for i, d := range active {
		before[i] = w.folderHash(d)
	}
	if err := w.branch.Refresh(ctx); err != nil {
		return err
	}
	w.stale = false
	if err := w.recoverPush(ctx, active); err != nil {
		w.stale = true
		return err
	}
	for i, d := range active {
		if w.folderHash(d) != before[i] {
			d.seeds.invalidateAll()
		}
	}
	w.show(active)
	return nil
}

func (w *worker) folderHash(d *destination) gitrepo.Hash {
	hash, _ := w.branch.Snapshot().FolderHash(d.plan.Load().object.Spec.BaseFolder)
	return hash
}

// recoverPush finds out whether a push landed whose answer nobody heard: if so its rows are
// done, and doing them again would write history twice.
func (w *worker) recoverPush(ctx context.Context, active []*destination) error {
	note, ok, err := w.services.pushes.read(ctx, w.key)
	if err != nil || !ok {
		return err
	}
	landed, err := w.branch.Contains(ctx, note.Tip, containsDepth)
	if err != nil {
		return err
	}
	if landed {
		for _, d := range active {
			if err := w.removeThrough(ctx, d, note.Through[d.key.String()]); err != nil {
				return err
			}
		}
	}
	return w.services.pushes.clear(ctx, w.key)
}

// containsDepth is how far back on the remote a push is looked for. Other writers would
// have had to push more commits than that while this server was away.
const containsDepth = 256

// removeThrough removes a destination's rows up to and including a sequence.
func (w *worker) removeThrough(ctx context.Context, d *destination, sequence uint64) error {
	for sequence > 0 {
		rows, err := w.services.outbox.Next(ctx, d.key, intakeBatch, 1<<30)
		if err != nil {
			return err
		}
		done := slices.DeleteFunc(rows, func(row Row) bool { return row.Sequence > sequence })
		if len(done) == 0 {
			return nil
		}
		if err := w.forget(ctx, d, done); err != nil {
			return err
		}
	}
	return nil
}

// forget removes rows that need no push any more.
func (w *worker) forget(ctx context.Context, d *destination, rows []Row) error {
	if err := w.services.outbox.Remove(ctx, rows); err != nil {
		return err
	}
	d.queue.removed(rows)
	return nil
}

// show makes the branch as it is now visible to the router.
func (w *worker) show(active []*destination) {
	tree := w.branch.Snapshot()
	for _, d := range active {
		d.tree.Store(tree)
	}
}

// due returns when the worker has to look again if nobody wakes it; zero: never.
func (w *worker) due(active []*destination) time.Time {
	due := w.gatherUntil
	earlier := func(at time.Time) {
		if !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	for _, d := range active {
		at, sweep := d.seeds.next()
		earlier(at)
		if p := d.plan.Load(); sweep && !p.held && time.Now().Before(d.sweepableAt(p)) {
			earlier(d.sweepableAt(p))
		}
	}
	return due
}

// report shows an error in the records of all destinations of the branch.
func (w *worker) report(err error) {
	for _, d := range w.active() {
		d.record.failed(err)
	}
}

// settled shows that nothing keeps the destinations back.
func (w *worker) settled(active []*destination) {
	for _, d := range active {
		d.record.succeeded()
	}
}
