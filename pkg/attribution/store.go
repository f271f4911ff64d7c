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
	// factsLimit bounds the recent facts, and separately the lasting ones.
	factsLimit = 10_000
	// factsLifetime is how long a recent fact is stored, lastingLifetime a lasting one.
	factsLifetime   = time.Minute
	lastingLifetime = 7 * 24 * time.Hour
)

// storedFact is a fact in a store. Only claimed changes; the other fields may be read without the Joiner's lock.
type storedFact struct {
	Fact
	// arrived is when the fact arrived; for a recovered one, when its request began if that is earlier.
	arrived time.Time
	// recovered is set if the fact was stored before the term began or the store was read again. It is not used to
	// measure lag.
	recovered bool
	// claimed is set if this fact, which has the object's name but neither uid nor resourceVersion, has explained an
	// event. The holder of the object's queue owns it from the decision until the delivery, so that no two events claim
	// one fact. Facts about collections are never claimed: they explain many events, whose queues have different holders.
	claimed bool
	place   *list.Element
}

// store holds a bounded number of facts for a bounded time. Beyond the limit, the oldest fact of the namespace with the
// most facts is dropped.
type store struct {
	limit    int
	lifetime time.Duration
	ids      map[factID]*storedFact
	// after has the facts by the state that they created, before by the state that they started from.
	after, before index[revision]
	// ofUID has all facts with a uid; ofName has those with only a name or a collection, and all deletions.
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
		limit: limit, lifetime: lifetime, ids: map[factID]*storedFact{}, after: index[revision]{}, before: index[revision]{},
		ofUID: index[types.UID]{}, ofName: index[Object]{}, byName: map[string]*namespaceFacts{},
	}
}

// has reports whether a fact is stored.
func (s *store) has(fact *Fact) bool {
	_, ok := s.ids[factID{fact.Signal, fact.ID}]
	return ok
}

// add stores a fact, unless it is stored already, and returns the number of evicted facts.
func (s *store) add(one storedFact) (evicted int) {
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

// index adds a fact to the indexes, or removes it.
func (s *store) index(k *storedFact, enter bool) {
	deletion := k.Operation == v1alpha1.OperationDelete
	if k.UID != "" {
		s.ofUID.set(k.UID, k, enter)
	}
	if k.After != "" && k.UID != "" && k.Signal == Audit && !deletion {
		s.after.set(revision{k.UID, k.After}, k, enter)
	}
	if k.Signal == Admission && !deletion {
		s.before.set(revision{k.UID, k.Before}, k, enter)
	}
	if deletion || k.Signal == Audit && (k.UID == "" || k.After == "") {
		s.ofName.set(objectOfFact(&k.Fact), k, enter)
	}
}

func (s *store) remove(k *storedFact) {
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

// expire removes expired facts. Within a namespace, facts are ordered by arrival, except for recovered ones.
func (s *store) expire(now time.Time) {
	for _, of := range s.byName {
		for of.facts.Len() > 0 && now.Sub(of.oldest().arrived) > s.lifetime {
			s.remove(of.oldest())
		}
	}
}

// forget removes all facts about one object, and reports whether there were any.
func (s *store) forget(uid types.UID) bool {
	facts := slices.Clone(s.ofUID[uid])
	for _, k := range facts {
		s.remove(k)
	}
	return len(facts) > 0
}

// index finds facts by one of their properties.
type index[K comparable] map[K][]*storedFact

func (x index[K]) set(key K, k *storedFact, enter bool) {
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

func (n *namespaceFacts) oldest() *storedFact { return n.facts.Front().Value.(*storedFact) }

// namespaceHeap is a heap with the namespace with the most facts on top.
type namespaceHeap []*namespaceFacts

var _ heap.Interface = &namespaceHeap{}

func (h namespaceHeap) Len() int           { return len(h) }
func (h namespaceHeap) Less(i, j int) bool { return h[i].facts.Len() > h[j].facts.Len() }
func (h namespaceHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}

// Push implements heap.Interface.
func (h *namespaceHeap) Push(x any) {
	of := x.(*namespaceFacts)
	of.position = len(*h)
	*h = append(*h, of)
}

// Pop implements heap.Interface.
func (h *namespaceHeap) Pop() any {
	last := len(*h) - 1
	of := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return of
}
