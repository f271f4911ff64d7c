// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// lingering is how long a workspace follows the cluster after its last stream has ended: a tab that is loaded again opens one soon.
const lingering = time.Minute

// workspace is what a session reads and does, with the rights of its user. All tabs of kubectl slipstream dashboard share one.
type workspace struct {
	cluster *cluster
	runs    *runs
	reviews *reviews
	// allow is set if actions may write.
	allow atomic.Bool
	// hello is the first message of each stream.
	hello hello
	// follow has a hub follow the cluster until stop is called.
	follow func(*hub) (stop func())
	// streamLife is how long a stream lasts, 0 if there is no limit.
	streamLife time.Duration
	// maxStreams is the number of streams at the same time.
	maxStreams int

	mu sync.Mutex
	// hub is what streams show, nil while nothing follows the cluster. streams is the number of those that are open.
	hub     *hub
	streams int
	// stop ends what follows the cluster, and lingers is the timer that calls it after the last stream.
	stop    func()
	lingers *time.Timer
	// closed is set when the session has ended, so that nothing follows the cluster again.
	closed bool
}

// newWorkspace returns a workspace whose commands are run by runs, and whose hubs are followed by follow.
func newWorkspace(of *cluster, runs *runs, follow func(*hub) (stop func())) *workspace {
	return &workspace{cluster: of, runs: runs, reviews: &reviews{client: of.reviews, now: time.Now}, follow: follow, maxStreams: maxStreams}
}

// background runs functions until the command ends.
type background struct {
	mu    sync.Mutex
	ended bool
	all   sync.WaitGroup
}

// start runs a function, unless the command ends.
func (b *background) start(run func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.all.Go(run)
	}
}

// wait waits until all functions have ended.
func (b *background) wait() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.all.Wait()
}

// following returns a function that has a hub follow a namespace of a cluster, or all of it, until ctx ends.
func following(ctx context.Context, in *background, of *cluster, namespace string) func(*hub) (stop func()) {
	return func(h *hub) func() {
		ctx, stop := context.WithCancel(ctx)
		in.start(func() { newFeed(of, h, namespace).run(ctx) })
		return stop
	}
}

// acquire returns the hub, which follows the cluster until release was called as often as acquire, and a while longer.
func (w *workspace) acquire() *hub {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams++
	if w.lingers != nil {
		w.lingers.Stop()
		w.lingers = nil
	}
	if w.hub == nil {
		w.hub = newHub(streamed, map[string]int{ofChanges: keptChanges})
		w.stop = func() {}
		if !w.closed {
			w.stop = w.follow(w.hub)
		}
	}
	return w.hub
}

func (w *workspace) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams--; w.streams > 0 {
		return
	}
	w.lingers = time.AfterFunc(lingering, w.rest)
}

// rest no longer follows the cluster, unless a stream was opened in the meantime.
func (w *workspace) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams == 0 && w.hub != nil {
		w.stop()
		w.hub, w.stop, w.lingers = nil, nil, nil
	}
}

// close no longer follows the cluster: the session has ended, and its streams end, too.
func (w *workspace) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.hub != nil {
		w.stop()
	}
}

// setAllow is the switch that lets actions write, for all tabs of the workspace.
func (w *workspace) setAllow(c *call) error {
	var request struct {
		Allow bool `json:"allow"`
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	w.allow.Store(request.Allow)
	w.notify()
	return respond(c, struct{}{})
}

// notify has all streams look for what to send.
func (w *workspace) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hub != nil {
		w.hub.notifyAll()
	}
}

// checkAllowed refuses to write unless the user has allowed it.
func (w *workspace) checkAllowed() error {
	if !w.allow.Load() {
		return &refusal{http.StatusForbidden, "Changes are not allowed: this page only shows the cluster", "Switch on Allow changes on the page"}
	}
	return nil
}
