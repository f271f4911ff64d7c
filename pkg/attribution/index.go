// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// factIndex has the facts that have arrived, and finds those about an event or an object. It is used under the Joiner's
// lock.
type factIndex struct{ recent, lasting *store }

func newFactIndex() *factIndex {
	return &factIndex{recent: newStore(factsLimit, factsLifetime), lasting: newStore(factsLimit, lastingLifetime)}
}

// storeOf returns the store that a fact belongs to.
func (x *factIndex) storeOf(fact *Fact) *store {
	if fact.Lasting && fact.Operation == v1alpha1.OperationDelete {
		return x.lasting
	}
	return x.recent
}

// has reports whether a fact is stored.
func (x *factIndex) has(fact *Fact) bool { return x.storeOf(fact).has(fact) }

// add stores a fact, and returns the number of evicted facts.
func (x *factIndex) add(one storedFact) (evicted int) { return x.storeOf(&one.Fact).add(one) }

// expire removes expired facts.
func (x *factIndex) expire(now time.Time) {
	x.recent.expire(now)
	x.lasting.expire(now)
}

// forget removes the lasting facts about an object, and reports whether there were any.
func (x *factIndex) forget(uid types.UID) bool { return x.lasting.forget(uid) }

func (x *factIndex) empty() bool { return len(x.recent.ids)+len(x.lasting.ids) == 0 }

// gather adds the facts about an event to its evidence.
func (x *factIndex) gather(e *evidence) {
	if e.pending.event.Operation == v1alpha1.OperationDelete {
		x.gatherDeletions(e)
		return
	}
	w := e.pending
	e.exact = slices.Clone(x.recent.after[w.state])
	e.writer = writerOf(w.object, x.recent.ofUID[w.state.uid], w.event.Object)
	if w.known {
		e.attempts = slices.Clone(x.recent.before[revision{w.state.uid, w.predecessor}])
	} else {
		e.attempts = filter(x.recent.ofUID[w.state.uid], func(k *storedFact) bool {
			return k.Signal == Admission && !isDeletion(k)
		})
	}
	e.named = filter(x.recent.ofName[w.object], func(k *storedFact) bool { return k.UID == "" || k.UID == w.state.uid })
}

func (x *factIndex) gatherDeletions(e *evidence) {
	object, uid := e.pending.object, e.pending.state.uid
	for _, from := range []*store{x.recent, x.lasting} {
		e.deletions = append(e.deletions, filter(from.ofUID[uid], isDeletion)...)
		e.named = append(e.named, filter(from.ofName[object], func(k *storedFact) bool { return k.Signal == Audit && k.UID == "" })...)
		if object.Namespace != "" {
			namespace := Object{GroupResource: namespaces, Name: object.Namespace}
			e.namespaceDeletions = append(e.namespaceDeletions, filter(from.ofName[namespace], isDeletion)...)
		}
	}
	e.named = append(e.named, filter(x.recent.ofName[object.collection()], func(k *storedFact) bool { return k.Collection != nil })...)
}

// trail returns the facts for an event that was found by comparison.
func (x *factIndex) trail(event Event, now time.Time) *auditTrail {
	t := &auditTrail{event: event, object: objectOf(event.Resource.GroupResource(), event.Object)}
	uid := event.Object.GetUID()
	if event.Operation == v1alpha1.OperationDelete {
		t.deletions = x.auditedDeletions(t.object, uid, now)
		return t
	}
	t.exact = slices.Clone(x.recent.after[revision{uid, event.Object.GetResourceVersion()}])
	t.ofUID = slices.Clone(x.recent.ofUID[uid])
	t.named = filter(x.recent.ofName[t.object], func(k *storedFact) bool { return k.UID == "" && k.Collection == nil && !isDeletion(k) })
	return t
}

// auditedDeletions returns the audited deletions of one object, of any uid if none is given.
func (x *factIndex) auditedDeletions(object Object, uid types.UID, now time.Time) []*storedFact {
	return filter(append(slices.Clone(x.recent.ofName[object]), x.lasting.ofName[object]...), func(k *storedFact) bool {
		return k.Signal == Audit && isDeletion(k) && (uid == "" || k.UID == "" || k.UID == uid) &&
			(k.Lasting || now.Sub(k.arrived) <= factsLifetime)
	})
}
