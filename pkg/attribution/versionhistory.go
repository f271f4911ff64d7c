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
func (v *versionHistory) begin(now time.Time) {
	if v.begun.IsZero() {
		v.begun = now
	}
}

// listed records that events of a scope may have been missed.
func (v *versionHistory) listed(s scope, now time.Time) {
	v.listings++
	v.listedAt[s] = listing{v.listings, now}
}

// lastListing returns the last call of listed whose scope includes an object. Its number is 0 if there was none.
func (v *versionHistory) lastListing(object Object) listing {
	all, own := v.listedAt[scope{GroupResource: object.GroupResource}], v.listedAt[scope{object.GroupResource, object.Namespace}]
	if own.number > all.number {
		return own
	}
	return all
}

// observe records an object's resourceVersion. Two watches may deliver one event, the second one late.
func (v *versionHistory) observe(uid types.UID, version string, now time.Time) {
	h, ok := v.of(uid)
	if ok && !newer(version, h.last) {
		return
	}
	if _, young := v.young[uid]; !young && len(v.young) >= v.limit {
		v.old, v.young, v.forgot = v.young, make(map[types.UID]history, v.limit), now
	}
	v.young[uid] = history{last: version, before: h.last, seen: v.listings, beforeSeen: h.seen}
}

func (v *versionHistory) of(uid types.UID) (history, bool) {
	if h, ok := v.young[uid]; ok {
		return h, true
	}
	h, ok := v.old[uid]
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
func (v *versionHistory) predecessor(object Object, uid types.UID, version string) (string, bool) {
	h, ok := v.of(uid)
	if !ok || h.last != version || h.before == "" {
		return "", false
	}
	return h.before, h.beforeSeen >= v.lastListing(object).number
}

// unchangedSince returns the time since which an object had a single resourceVersion before this one, if predecessor does
// not know which: the start of the watch, or the time at which the object was dropped. A watch delivers every change
// since its start in order, so one in between would have been observed. It returns zero if that is uncertain.
func (v *versionHistory) unchangedSince(object Object, uid types.UID, version string) time.Time {
	listed := v.lastListing(object)
	h, ok := v.of(uid)
	if !ok || h.last != version || listed.number == 0 || h.before != "" && h.beforeSeen >= listed.number {
		return time.Time{}
	}
	since := listed.at
	for _, at := range []time.Time{v.begun, v.forgot} {
		if at.After(since) {
			since = at
		}
	}
	return since
}
