// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// watchState is how one watch is.
type watchState struct {
	// listed says that the watch has begun to deliver.
	listed  bool
	failure string
}

// watchHandler receives what the streams of one kind bring.
type watchHandler struct {
	*Observer
	kind item.Kind
}

var _ kubewatch.Handler = watchHandler{}

func (h watchHandler) id(watch kubewatch.Watch) feedID { return feedID{h.kind, watch.Resource} }

// Listed asks for a list, which the watch has to precede.
func (h watchHandler) Listed(_ context.Context, watch kubewatch.Watch, _ string) {
	id := h.id(watch)
	h.note(id, func(state *watchState) { state.listed = true }, func(t *taker) { t.need(ledger.Debounced) })
	h.queue.Forget(id) // The reason for which the last list failed may be gone.
	h.queue.Add(id)
}

// Changed tells of a change when the type is not being listed.
func (h watchHandler) Changed(ctx context.Context, watch kubewatch.Watch, change kubewatch.Change) {
	f, ok := h.feed(h.id(watch))
	if !ok || f.turn.take(ctx) != nil {
		return
	}
	defer f.turn.leave()
	f.changed(h.watching(f), change)
}

// State notes how a watch is.
func (h watchHandler) State(watch kubewatch.Watch, failure error) {
	h.note(h.id(watch), func(state *watchState) {
		state.failure = ""
		if failure != nil {
			state.failure = failure.Error()
		}
	}, func(*taker) {})
}

// note changes what is known of a watch, and of who takes what it brings.
func (o *Observer) note(id feedID, watch func(*watchState), each func(*taker)) {
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

// watching are the takers of a feed that are told of changes.
func (o *Observer) watching(f *feed) []*taker {
	o.mu.Lock()
	defer o.mu.Unlock()
	return f.watching
}
