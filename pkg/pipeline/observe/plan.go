// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// arrange makes a change of the pipelines, and has every type watched that one of them takes, and no other.
func (o *Observer) arrange(ctx context.Context, change func()) error {
	if err := o.planning.take(ctx); err != nil {
		return err
	}
	defer o.planning.leave()
	snapshot := o.config.Catalogue.Snapshot()
	before := o.takers()
	o.change(func() {
		change()
		if snapshot != nil {
			o.plan(snapshot)
		}
	})
	after := o.takers()
	for t := range before.Difference(after) {
		t.end()
	}
	if snapshot != nil {
		o.retainTypes(snapshot)
	}
	for t := range after.Difference(before) {
		o.queue.Add(t.feed.id)
	}
	if err := o.watch(ctx); err != nil {
		o.planSoon()
		return err
	}
	return nil
}

// takers are those of all pipelines.
func (o *Observer) takers() sets.Set[*taker] {
	o.mu.Lock()
	defer o.mu.Unlock()
	takers := sets.New[*taker]()
	for _, p := range o.pipelines {
		takers.Insert(slices.Collect(maps.Values(p.takers))...)
	}
	return takers
}

// plan makes the takers of all pipelines those that they want, and the feeds those that are taken. Takers that want the same as before
// go on.
func (o *Observer) plan(snapshot *watch.Snapshot) {
	taken := map[feedID][]*taker{}
	for _, p := range o.pipelines {
		takers := map[feedID]*taker{}
		for id, w := range p.selection.wants(snapshot) {
			t, ok := p.takers[id]
			if !ok || !reflect.DeepEqual(t.want, w) {
				t = o.newTaker(id, w, p.target)
			}
			takers[id] = t
			taken[id] = append(taken[id], t)
		}
		p.takers = takers
	}
	for id, f := range o.feeds {
		f.take(taken[id])
		if len(f.takers) == 0 {
			delete(o.feeds, id)
		}
	}
}

// newTaker asks for its first list.
func (o *Observer) newTaker(id feedID, w want, target Target) *taker {
	f, ok := o.feeds[id]
	if !ok {
		f = &feed{id: id, turn: newTurn()}
		o.feeds[id] = f
	}
	t := &taker{want: w, feed: f, target: target}
	how := ledger.Debounced
	if w.poll {
		how = ledger.Now
	}
	t.need(how)
	return t
}

// watch has the streams run that are needed, and forgets about the others.
func (o *Observer) watch(ctx context.Context) error {
	watches := o.needed()
	for kind, s := range o.sides {
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

// needed are the watches of the types of which somebody is told of changes.
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

// retainTypes tells all targets which types there are. Who took another has ended, so that nothing is told of it afterwards.
func (o *Observer) retainTypes(snapshot *watch.Snapshot) {
	o.mu.Lock()
	pipelines := slices.Collect(maps.Values(o.pipelines))
	o.mu.Unlock()
	for _, p := range pipelines {
		p.target.RetainTypes(p.selection.keeps(snapshot, p.wanted()))
	}
}

func (p *pipeline) wanted() map[feedID]want {
	wanted := make(map[feedID]want, len(p.takers))
	for id, t := range p.takers {
		wanted[id] = t.want
	}
	return wanted
}
