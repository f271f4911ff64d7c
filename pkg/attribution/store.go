// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"container/heap"
	"container/list"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// factsLimit bounds the facts that are kept, and as many that last.
	factsLimit = 10_000
	// factsLifetime is how long a fact is kept, lastingLifetime one that lasts.
	factsLifetime   = time.Minute
	lastingLifetime = 7 * 24 * time.Hour
)

// kept is a fact in a store. Of its fields only claimed changes; the others may be read without the Joiner's lock.
type kept struct {
	Fact
	// arrived is when the fact came; of a recovered one, when its request began, if that is longer ago.
	arrived time.Time
	// recovered says that it was told before the term began or the store was read again, and says nothing about lateness.
	recovered bool
	// claimed says that a change was found to be that of this fact, which names its object but tells neither uid nor
	// resourceVersion, and could be taken for that of another. It belongs to who holds the room of that object, from the
	// decision to its delivery, so that no two events claim one fact. A collection's facts are never claimed: they
	// explain many events, whose rooms are held by many at once.
	claimed bool
	place   *list.Element
}

// store keeps a bounded number of facts for a bounded time. When there are too many, the namespace that has most of them
// loses its oldest.
type store struct {
	limit    int
	lifetime time.Duration
	ids      map[factID]*kept
	// made has the facts that tell which state they made, tried those that tell which one they started from.
	made, tried index[revision]
	// ofUID has all that tell a uid, ofName those that tell only a name or a collection, and all deletions.
	ofUID      index[types.UID]
	ofName     index[Object]
	namespaces namespaceHeap
	byName     map[string]*namespaceFacts
}

type factID struct {
	signal Signal
	id     string
}

func newStore(limit int, lifetime time.Duration) *store {
	return &store{
		limit: limit, lifetime: lifetime, ids: map[factID]*kept{}, made: index[revision]{}, tried: index[revision]{},
		ofUID: index[types.UID]{}, ofName: index[Object]{}, byName: map[string]*namespaceFacts{},
	}
}

// has says whether a fact has been told before.
func (s *store) has(fact *Fact) bool {
	_, ok := s.ids[factID{fact.Signal, fact.ID}]
	return ok
}

// add keeps a fact, unless it has been told before, and returns how many it made give way.
func (s *store) add(one kept) (evicted int) {
	if s.has(&one.Fact) {
		return 0
	}
	k := &one
	s.ids[factID{k.Signal, k.ID}] = k
	s.index(k, true)
	of, ok := s.byName[k.Namespace]
	if !ok {
		of = &namespaceFacts{name: k.Namespace, facts: list.New()}
		s.byName[k.Namespace] = of
		heap.Push(&s.namespaces, of)
	}
	k.place = of.facts.PushBack(k)
	heap.Fix(&s.namespaces, of.position)
	for len(s.ids) > s.limit {
		s.remove(s.namespaces[0].oldest())
		evicted++
	}
	return evicted
}

// index enters a fact where it is looked for, or takes it from there.
func (s *store) index(k *kept, enter bool) {
	deletion := k.Operation == v1alpha1.OperationDelete
	if k.UID != "" {
		s.ofUID.set(k.UID, k, enter)
	}
	if k.After != "" && k.UID != "" && k.Signal == Audit && !deletion {
		s.made.set(revision{k.UID, k.After}, k, enter)
	}
	if k.Signal == Admission && !deletion {
		s.tried.set(revision{k.UID, k.Before}, k, enter)
	}
	if deletion || k.Signal == Audit && (k.UID == "" || k.After == "") {
		s.ofName.set(objectOfFact(&k.Fact), k, enter)
	}
}

func (s *store) remove(k *kept) {
	delete(s.ids, factID{k.Signal, k.ID})
	s.index(k, false)
	of := s.byName[k.Namespace]
	of.facts.Remove(k.place)
	if of.facts.Len() == 0 {
		delete(s.byName, of.name)
		heap.Remove(&s.namespaces, of.position)
		return
	}
	heap.Fix(&s.namespaces, of.position)
}

// expire removes what is past its time. Within a namespace facts are in the order of their arrival, give or take those
// that were recovered.
func (s *store) expire(now time.Time) {
	for _, of := range s.byName {
		for of.facts.Len() > 0 && now.Sub(of.oldest().arrived) > s.lifetime {
			s.remove(of.oldest())
		}
	}
}

// forget removes all facts about one object, and says whether there were any.
func (s *store) forget(uid types.UID) bool {
	facts := slices.Clone(s.ofUID[uid])
	for _, k := range facts {
		s.remove(k)
	}
	return len(facts) > 0
}

// index finds facts by one of their properties.
type index[K comparable] map[K][]*kept

func (x index[K]) set(key K, k *kept, enter bool) {
	facts := x[key]
	if enter {
		x[key] = append(facts, k)
		return
	}
	if i := slices.Index(facts, k); i >= 0 {
		facts = slices.Delete(facts, i, i+1)
	}
	if len(facts) == 0 {
		delete(x, key)
		return
	}
	x[key] = facts
}

// namespaceFacts are the facts of one namespace, the oldest first.
type namespaceFacts struct {
	name     string
	facts    *list.List
	position int
}

func (n *namespaceFacts) oldest() *kept { return n.facts.Front().Value.(*kept) }

// namespaceHeap has the namespace with most facts on top.
type namespaceHeap []*namespaceFacts

var _ heap.Interface = &namespaceHeap{}

func (h namespaceHeap) Len() int           { return len(h) }
func (h namespaceHeap) Less(i, j int) bool { return h[i].facts.Len() > h[j].facts.Len() }
func (h namespaceHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}

// Push is for package heap.
func (h *namespaceHeap) Push(x any) {
	of := x.(*namespaceFacts)
	of.position = len(*h)
	*h = append(*h, of)
}

// Pop is for package heap.
func (h *namespaceHeap) Pop() any {
	last := len(*h) - 1
	of := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return of
}
