// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

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
	// begun is when the first event could be observed, forgot when objects were last forgotten.
	begun, forgot time.Time
	// listings counts the calls of listed, and listedAt has the last one for a type and a namespace.
	listings int
	listedAt map[scope]listing
}

// listing is one call of listed.
type listing struct {
	number int
	at     time.Time
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
	return &memory{limit: limit, young: map[types.UID]history{}, listedAt: map[scope]listing{}}
}

// begin takes note that events are observed from now on, if they have not been before.
func (m *memory) begin(now time.Time) {
	if m.begun.IsZero() {
		m.begun = now
	}
}

// listed takes note that events of a scope may have been missed.
func (m *memory) listed(s scope, now time.Time) {
	m.listings++
	m.listedAt[s] = listing{m.listings, now}
}

// lastListing returns the last call of listed whose scope an object is in. Its number is 0 if there was none.
func (m *memory) lastListing(object Object) listing {
	all, own := m.listedAt[scope{GroupResource: object.GroupResource}], m.listedAt[scope{object.GroupResource, object.Namespace}]
	if own.number > all.number {
		return own
	}
	return all
}

// observe takes note of an object's resourceVersion. Two watches may bring one event, the second one late.
func (m *memory) observe(uid types.UID, version string, now time.Time) {
	h, ok := m.of(uid)
	if ok && !newer(version, h.last) {
		return
	}
	if _, young := m.young[uid]; !young && len(m.young) >= m.limit {
		m.old, m.young, m.forgot = m.young, make(map[types.UID]history, m.limit), now
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
	return h.before, h.beforeSeen >= m.lastListing(object).number
}

// unchangedSince returns since when an object had one resourceVersion before this one, where predecessor does not know
// which: since the watch started, or since the object was forgotten. A watch brings every change since it started, and in
// order, so one in between would have been observed. It returns zero if that is not certain.
func (m *memory) unchangedSince(object Object, uid types.UID, version string) time.Time {
	listed := m.lastListing(object)
	h, ok := m.of(uid)
	if !ok || h.last != version || listed.number == 0 || h.before != "" && h.beforeSeen >= listed.number {
		return time.Time{}
	}
	since := listed.at
	for _, at := range []time.Time{m.begun, m.forgot} {
		if at.After(since) {
			since = at
		}
	}
	return since
}
