// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// arrange applies a change to the pipelines, and watches exactly the types that they select.
func (o *Observer) arrange(ctx context.Context, change func()) error {
	if err := o.planning.Acquire(ctx, 1); err != nil {
		return err
	}
	defer o.planning.Release(1)
	before := o.subscribers()
	o.change(func() {
		change()
		o.plan()
	})
	after := o.subscribers()
	for t := range before.Difference(after) {
		t.end()
	}
	o.retainTypes()
	for t := range after.Difference(before) {
		o.queue.Add(t.feed.id)
	}
	if err := o.watch(ctx); err != nil {
		o.planSoon()
		return err
	}
	return nil
}

// subscribers returns the subscribers of all pipelines.
func (o *Observer) subscribers() sets.Set[*subscriber] {
	o.mu.Lock()
	defer o.mu.Unlock()
	subscribers := sets.New[*subscriber]()
	for _, p := range o.pipelines {
		subscribers.Insert(slices.Collect(maps.Values(p.subscribers))...)
	}
	return subscribers
}

// plan updates the subscribers of all pipelines, and the feeds. Subscribers whose selection has not changed are kept.
func (o *Observer) plan() {
	taken := map[feedID][]*subscriber{}
	for _, p := range o.pipelines {
		subscribers := map[feedID]*subscriber{}
		for id, w := range p.selection.wants(p.types) {
			t, ok := p.subscribers[id]
			if !ok || !reflect.DeepEqual(t.want, w) {
				t = o.newSubscriber(id, w, p.target)
			}
			subscribers[id] = t
			taken[id] = append(taken[id], t)
		}
		p.subscribers = subscribers
	}
	for id, f := range o.feeds {
		f.subscribe(taken[id])
		if len(f.subscribers) == 0 {
			delete(o.feeds, id)
		}
	}
}

// newSubscriber creates a subscriber and requests its first list.
func (o *Observer) newSubscriber(id feedID, w want, target Target) *subscriber {
	f, ok := o.feeds[id]
	if !ok {
		f = &feed{id: id, lock: semaphore.NewWeighted(1)}
		o.feeds[id] = f
	}
	t := &subscriber{want: w, feed: f, target: target}
	urgency := ledger.Debounced
	if w.poll {
		urgency = ledger.Immediate
	}
	t.need(urgency)
	return t
}

// watch starts the streams that are needed, and stops the others.
func (o *Observer) watch(ctx context.Context) error {
	watches := o.needed()
	for kind, s := range o.sources {
		if err := s.streams.Set(ctx, watches[kind]); err != nil {
			return fmt.Errorf("change the watches of %s objects: %w", kind, err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.watches, func(id feedID, _ watchState) bool {
		return !slices.Contains(watches[id.kind], watch.Watch{Resource: id.resource})
	})
	return nil
}

// needed returns the watches of the types whose changes are reported.
func (o *Observer) needed() map[item.Kind][]watch.Watch {
	o.mu.Lock()
	defer o.mu.Unlock()
	watches := map[item.Kind][]watch.Watch{}
	for id, f := range o.feeds {
		if len(f.watching) > 0 {
			watches[id.kind] = append(watches[id.kind], watch.Watch{Resource: id.resource})
		}
	}
	return watches
}

// retainTypes reports the selected types to all targets. Subscribers of other types have ended, so that no objects of them are reported
// afterwards.
func (o *Observer) retainTypes() {
	o.mu.Lock()
	pipelines := slices.Collect(maps.Values(o.pipelines))
	o.mu.Unlock()
	for _, p := range pipelines {
		if p.types != nil {
			p.target.RetainTypes(p.selection.keeps(p.types, p.wanted()))
		}
	}
}

func (p *pipeline) wanted() map[feedID]want {
	wanted := make(map[feedID]want, len(p.subscribers))
	for id, t := range p.subscribers {
		wanted[id] = t.want
	}
	return wanted
}
