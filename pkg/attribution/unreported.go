// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// unreportedLifetime is how long the audit is not expected to report changes of a writer after it has not reported one.
	unreportedLifetime = 30 * time.Second
	// unreportedLimit bounds the writers that are recorded. Beyond it, all are forgotten.
	unreportedLimit = 10_000
)

// unreported records when the audit last did not report a change in time, by its writer. The audit policy leaves some requests out, and
// events are dropped when there are too many. A change of another writer is expected to be reported, even if the audit has reported later
// requests meanwhile: an API server sends its lists of events concurrently, and sends one that failed again after a pause.
type unreported struct{ lately[writer] }

// writer is a field manager of objects of a type in a namespace. The one without a name represents all that delete them.
type writer struct {
	collection Object
	manager    string
}

// writing is who made a change, as far as field managers show: a writer if isKnown is set, and without doubt if isCertain is set.
type writing struct {
	writer             writer
	isKnown, isCertain bool
}

// writingOf returns who made the change of an event that arrived at a time. Field managers do not show it if the object has none, if its
// status was written later than the rest, or if its deletion was requested: then the change may be that request. It is certain if no other
// manager has written the object, or its status, in the same second, and that was when the event arrived: who only removes fields owns none.
func writingOf(event *Event, arrived time.Time) writing {
	object := event.Object
	w := writing{writer: writer{collection: objectOf(event.Resource.GroupResource(), object).collection()}}
	if event.Operation == v1alpha1.OperationDelete {
		w.isKnown, w.isCertain = true, true
		return w
	}
	newest, unique, _ := newestEntry(object)
	written, err := time.Parse(time.RFC3339, newest.time)
	w.writer.manager = newest.manager
	w.isKnown = newest.manager != "" && object.GetDeletionTimestamp() == nil
	w.isCertain = unique && err == nil && arrived.Sub(written).Abs() <= 2*clockSkew
	for entry := range managedEntries(object) {
		if entry.subresource == "status" {
			w.isKnown = w.isKnown && entry.time <= newest.time
			w.isCertain = w.isCertain && entry.time < newest.time
		}
	}
	w.isCertain = w.isCertain && w.isKnown
	return w
}

// expects reports whether the audit is expected to report a change.
func (u unreported) expects(w writing, now time.Time) bool {
	return w.isKnown && !u.within(w.writer, unreportedLifetime, now)
}

// note records whether a change was reported in time.
func (u unreported) note(w writing, reported bool, now time.Time) {
	switch {
	case !w.isCertain:
	case reported:
		delete(u.lately, w.writer)
	default:
		if len(u.lately) >= unreportedLimit {
			clear(u.lately)
		}
		u.lately[w.writer] = now
	}
}
