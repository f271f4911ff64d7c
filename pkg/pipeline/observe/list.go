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

// listing is a list of a type for some of its subscribers.
type listing struct {
	feed        *feed
	subscribers []*subscriber
	// requested and urgency are the requests of the subscribers when the list started. Those that follow during the list have their own
	// urgency.
	requested []int
	urgency   []ledger.Urgency
	seen      sets.Set[item.Key]
}

// list lists a type for the subscribers that have requested it, or for only one of them, and reports the objects.
func (o *Observer) list(ctx context.Context, id feedID, only *subscriber) error {
	f, ok := o.feed(id)
	if !ok {
		return nil
	}
	if err := f.lock.Acquire(ctx, 1); err != nil {
		return err
	}
	defer f.lock.Release(1)
	l := o.begin(f, only)
	if len(l.subscribers) == 0 {
		return nil
	}
	at, err := o.sources[id.kind].lister.List(ctx, watch.Watch{Resource: id.resource}, l.visit)
	if err != nil {
		return o.failed(ctx, l, err)
	}
	l.finish(at)
	o.succeeded(l)
	return nil
}

// begin selects the subscribers of a list. A subscriber that receives changes is served once its watch has started, or at once if the list
// is only for it.
func (o *Observer) begin(f *feed, only *subscriber) *listing {
	l := &listing{feed: f, seen: sets.New[item.Key]()}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range f.subscribers {
		if t.due() && (t == only || only == nil && (t.poll || o.watches[f.id].listed)) {
			l.subscribers, l.requested, l.urgency = append(l.subscribers, t), append(l.requested, t.requested), append(l.urgency, t.urgency)
			t.urgency = ledger.Debounced
		}
	}
	return l
}

// visit reports one object.
func (l *listing) visit(object *unstructured.Unstructured, _ string) error {
	converted := conversion{object: object}
	for i, t := range l.subscribers {
		it, exists := converted.itemFor(t)
		if !exists {
			continue
		}
		if converted.by == t { // Once for all that agree.
			l.seen.Insert(it.Key)
		}
		if t.selects(it.Key) {
			t.report(func(target Target) { target.Upsert(it, l.urgency[i]) })
		}
	}
	return nil
}

// finish reports that no other objects exist.
func (l *listing) finish(at string) {
	for _, t := range l.subscribers {
		t.position = at
		t.report(func(target Target) {
			target.Retain(l.feed.id.kind, t.gvk.GroupVersion().String(), t.gvk.Kind, func(key item.Key) bool {
				return l.seen.Has(key) && t.selects(key)
			})
		})
		t.counted(l.seen)
	}
}

// succeeded records that the requests were served.
func (o *Observer) succeeded(l *listing) {
	o.change(func() {
		for i, t := range l.subscribers {
			t.served, t.failure = max(t.served, l.requested[i]), ""
		}
	})
}

// keep keeps the urgency of requests that were not served.
func (o *Observer) keep(l *listing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, t := range l.subscribers {
		t.urgency = max(t.urgency, l.urgency[i])
	}
}

// failed records why a type could not be listed.
func (o *Observer) failed(ctx context.Context, l *listing, err error) error {
	o.keep(l)
	if ctx.Err() != nil {
		return err
	}
	cause := err
	if inner := errors.Unwrap(err); inner != nil {
		cause = inner // The lister's error names the type, like the sentence below.
	}
	sentence := fmt.Sprintf("%s cannot be listed: %v", watch.Watch{Resource: l.feed.id.resource}, cause)
	o.change(func() {
		for _, t := range l.subscribers {
			t.failure = sentence
		}
	})
	return err
}
