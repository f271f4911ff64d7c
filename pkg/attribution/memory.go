// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// memoryLimit bounds the objects that are remembered, to between it and twice as many.
const memoryLimit = 25_000

// memory knows which resourceVersion an object had before the one that an event tells of. The objects that nothing has
// happened to for the longest time are forgotten first.
type memory struct {
	limit int
	// young are the objects seen lately. When there are enough of them they become old, and what was old is forgotten.
	young, old map[types.UID]history
	// listings counts the calls of listed, and listedAt has the count at the last one for a type and a namespace.
	listings int
	listedAt map[scope]int
}

// history is what is remembered of one object.
type history struct {
	// last is the newest resourceVersion, before the one that came before it, which may be unknown.
	last, before string
	// seen and beforeSeen are the numbers of listings when they were observed.
	seen, beforeSeen int
}

// scope is what one watch brings: the objects of a type in one namespace, or in all.
type scope struct {
	schema.GroupResource
	namespace string
}

func newMemory(limit int) *memory {
	return &memory{limit: limit, young: map[types.UID]history{}, listedAt: map[scope]int{}}
}

// listed takes note that events of a scope may have been missed.
func (m *memory) listed(s scope) {
	m.listings++
	m.listedAt[s] = m.listings
}

// observe takes note of an object's resourceVersion. Two watches may bring one event, the second one late.
func (m *memory) observe(uid types.UID, version string) {
	h, ok := m.of(uid)
	if ok && !newer(version, h.last) {
		return
	}
	if _, young := m.young[uid]; !young && len(m.young) >= m.limit {
		m.old, m.young = m.young, make(map[types.UID]history, m.limit)
	}
	m.young[uid] = history{last: version, before: h.last, seen: m.listings, beforeSeen: h.seen}
}

func (m *memory) of(uid types.UID) (history, bool) {
	if h, ok := m.young[uid]; ok {
		return h, true
	}
	h, ok := m.old[uid]
	return h, ok
}

// newer takes versions that cannot be compared for newer, unless they are the same.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	if err != nil {
		return version != than
	}
	return order > 0
}

// predecessor returns the resourceVersion that the object had before this one, if it is certain that no event in between
// was missed.
func (m *memory) predecessor(object Object, uid types.UID, version string) (string, bool) {
	h, ok := m.of(uid)
	if !ok || h.last != version || h.before == "" {
		return "", false
	}
	listed := max(m.listedAt[scope{GroupResource: object.GroupResource}], m.listedAt[scope{object.GroupResource, object.Namespace}])
	return h.before, h.beforeSeen >= listed
}
