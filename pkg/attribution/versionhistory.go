// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// versionHistoryLimit is the minimum number of objects that are recorded. The maximum is twice as many.
const versionHistoryLimit = 25_000

// versionHistory records the resourceVersion that an object had before the one of an event. The least recently changed
// objects are dropped first.
type versionHistory struct {
	limit int
	// young has the recently observed objects. At the limit it becomes old, and the previous old is dropped.
	young, old map[types.UID]history
	// begun is when observation started, forgot when objects were last dropped.
	begun, forgot time.Time
	// listings is the number of calls of listed; listedAt has the last one of each scope.
	listings int
	listedAt map[scope]listing
}

// listing is one call of listed.
type listing struct {
	number int
	at     time.Time
}

// history is the record of one object.
type history struct {
	// last is the newest resourceVersion; before is the one preceding it, empty if unknown.
	last, before string
	// seen and beforeSeen are the numbers of listings at which they were observed.
	seen, beforeSeen int
}

// scope is the set of objects of one watch: the objects of a type in one namespace, or in all.
type scope struct {
	schema.GroupResource
	namespace string
}

func newVersionHistory(limit int) *versionHistory {
	return &versionHistory{limit: limit, young: map[types.UID]history{}, listedAt: map[scope]listing{}}
}

// begin records that observation starts, if it has not started before.
func (m *versionHistory) begin(now time.Time) {
	if m.begun.IsZero() {
		m.begun = now
	}
}

// listed records that events of a scope may have been missed.
func (m *versionHistory) listed(s scope, now time.Time) {
	m.listings++
	m.listedAt[s] = listing{m.listings, now}
}

// lastListing returns the last call of listed whose scope includes an object. Its number is 0 if there was none.
func (m *versionHistory) lastListing(object Object) listing {
	all, own := m.listedAt[scope{GroupResource: object.GroupResource}], m.listedAt[scope{object.GroupResource, object.Namespace}]
	if own.number > all.number {
		return own
	}
	return all
}

// observe records an object's resourceVersion. Two watches may deliver one event, the second one late.
func (m *versionHistory) observe(uid types.UID, version string, now time.Time) {
	h, ok := m.of(uid)
	if ok && !newer(version, h.last) {
		return
	}
	if _, young := m.young[uid]; !young && len(m.young) >= m.limit {
		m.old, m.young, m.forgot = m.young, make(map[types.UID]history, m.limit), now
	}
	m.young[uid] = history{last: version, before: h.last, seen: m.listings, beforeSeen: h.seen}
}

func (m *versionHistory) of(uid types.UID) (history, bool) {
	if h, ok := m.young[uid]; ok {
		return h, true
	}
	h, ok := m.old[uid]
	return h, ok
}

// newer reports whether a version is newer than another. Versions that are not comparable count as newer unless they are
// equal.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	if err != nil {
		return version != than
	}
	return order > 0
}

// predecessor returns the resourceVersion that the object had before this one, if certainly no event in between was
// missed.
func (m *versionHistory) predecessor(object Object, uid types.UID, version string) (string, bool) {
	h, ok := m.of(uid)
	if !ok || h.last != version || h.before == "" {
		return "", false
	}
	return h.before, h.beforeSeen >= m.lastListing(object).number
}

// unchangedSince returns the time since which an object had a single resourceVersion before this one, if predecessor does
// not know which: the start of the watch, or the time at which the object was dropped. A watch delivers every change
// since its start in order, so one in between would have been observed. It returns zero if that is uncertain.
func (m *versionHistory) unchangedSince(object Object, uid types.UID, version string) time.Time {
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
