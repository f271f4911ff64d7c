// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// listing is one list of a type, for some of its takers.
type listing struct {
	feed   *feed
	takers []*taker
	// asked and how are what the takers had asked for when it began.
	asked []int
	how   []ledger.Urgency
	seen  sets.Set[item.Key]
}

// work makes lists that are due until the queue is shut down.
func (o *Observer) work(ctx context.Context) {
	for {
		id, ended := o.queue.Get()
		if ended {
			return
		}
		if err := o.list(ctx, id, nil); err != nil {
			o.queue.AddRateLimited(id)
		} else {
			o.queue.Forget(id)
		}
		o.queue.Done(id)
	}
}

// list lists a type for those of its takers who wait for that, or for one of them, and tells them what there is.
func (o *Observer) list(ctx context.Context, id feedID, only *taker) error {
	f, ok := o.feed(id)
	if !ok {
		return nil
	}
	if err := f.turn.take(ctx); err != nil {
		return err
	}
	defer f.turn.leave()
	l := o.begin(f, only)
	if len(l.takers) == 0 {
		return nil
	}
	at, err := o.sides[id.kind].lister.List(ctx, watch.Watch{Resource: id.resource}, l.visit)
	if err != nil {
		return o.failed(ctx, l, err)
	}
	l.finish(at)
	o.succeeded(l)
	return nil
}

// begin finds out who waits for a list. Who takes changes too does so once the watch that brings them has begun, or at once if it is
// the only one to be served.
func (o *Observer) begin(f *feed, only *taker) *listing {
	l := &listing{feed: f, seen: sets.New[item.Key]()}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range f.takers {
		if t.due() && (t == only || only == nil && (t.poll || o.watches[f.id].listed)) {
			l.takers, l.asked, l.how = append(l.takers, t), append(l.asked, t.asked), append(l.how, t.how)
		}
	}
	return l
}

// visit tells of one object.
func (l *listing) visit(object *unstructured.Unstructured) error {
	it, exists := l.takers[0].itemOf(object)
	if !exists {
		return nil
	}
	l.seen.Insert(it.Key)
	for i, t := range l.takers {
		if t.takes(it.Key) {
			t.tell(func(target Target) { target.Upsert(it, l.how[i]) })
		}
	}
	return nil
}

// finish tells that there are no others.
func (l *listing) finish(at string) {
	for _, t := range l.takers {
		t.position = at
		t.tell(func(target Target) {
			target.Retain(l.feed.id.kind, t.gvk.GroupVersion().String(), t.gvk.Kind, func(key item.Key) bool {
				return l.seen.Has(key) && t.takes(key)
			})
		})
		t.counted(l.seen)
	}
}

// succeeded notes that what had been asked for when the list began has been served.
func (o *Observer) succeeded(l *listing) {
	o.change(func() {
		for i, t := range l.takers {
			t.served, t.failure = max(t.served, l.asked[i]), ""
			if !t.due() {
				t.how = ledger.Debounced
			}
		}
	})
}

// failed notes why a type could not be listed.
func (o *Observer) failed(ctx context.Context, l *listing, err error) error {
	if ctx.Err() != nil {
		return err
	}
	cause := err
	if inner := errors.Unwrap(err); inner != nil {
		cause = inner // The lister says which type it was, as the sentence does.
	}
	sentence := fmt.Sprintf("%s cannot be listed: %v", watch.Watch{Resource: l.feed.id.resource}, cause)
	o.change(func() {
		for _, t := range l.takers {
			t.failure = sentence
		}
	})
	return err
}
