// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// watchState is the state of one watch.
type watchState struct {
	// listed reports whether the watch has started.
	listed  bool
	failure string
}

// watchHandler handles the streams of one kind.
type watchHandler struct {
	observer *Observer
	kind     item.Kind
}

var _ kubewatch.Handler = watchHandler{}

func (h watchHandler) id(watch kubewatch.Watch) feedID { return feedID{h.kind, watch.Resource} }

// Listed requests a list, which must start after the watch.
func (h watchHandler) Listed(_ context.Context, watch kubewatch.Watch, _ string) {
	id := h.id(watch)
	h.observer.note(id, func(state *watchState) { state.listed = true }, func(t *subscriber) { t.need(ledger.Debounced) })
	h.observer.queue.Add(id)
}

// Changed reports a change. It waits while the type is listed.
func (h watchHandler) Changed(ctx context.Context, watch kubewatch.Watch, change kubewatch.Change) {
	f, ok := h.observer.feed(h.id(watch))
	if !ok || f.lock.Acquire(ctx, 1) != nil {
		return
	}
	defer f.lock.Release(1)
	f.changed(h.observer.watching(f), change)
}

// State records the state of a watch.
func (h watchHandler) State(watch kubewatch.Watch, failure error) {
	h.observer.note(h.id(watch), func(state *watchState) {
		state.failure = ""
		if failure != nil {
			state.failure = failure.Error()
		}
	}, func(*subscriber) {})
}

// note updates the state of a watch and its subscribers.
func (o *Observer) note(id feedID, watch func(*watchState), each func(*subscriber)) {
	o.change(func() {
		state := o.watches[id]
		watch(&state)
		o.watches[id] = state
		if f, ok := o.feeds[id]; ok {
			for _, t := range f.watching {
				each(t)
			}
		}
	})
}

func (o *Observer) feed(id feedID) (*feed, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, ok := o.feeds[id]
	return f, ok
}

// watching returns the subscribers of a feed that receive changes.
func (o *Observer) watching(f *feed) []*subscriber {
	o.mu.Lock()
	defer o.mu.Unlock()
	return f.watching
}
