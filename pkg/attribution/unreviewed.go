// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import "time"

const (
	// distrust is how long the reviews of a collection do not count as complete after one of them was missing.
	distrust = time.Minute
	// unreviewedLimit bounds the collections of which that is known. Beyond it no reviews count as complete.
	unreviewedLimit = 10_000
)

// unreviewed holds when a change was last audited of which no review has come, by collection: a namespace and a type, or
// a type. An API server does not send the review of each change: its webhook configuration leaves types and namespaces out,
// and it goes on without the answer of a server that it cannot reach.
type unreviewed map[Object]time.Time

// everything stands for the collections for which there is no room.
var everything = Object{}

// note takes note of a change that had no review.
func (u unreviewed) note(object Object, now time.Time) {
	collection := object.collection()
	if _, ok := u[collection]; !ok && len(u) >= unreviewedLimit {
		collection = everything
	}
	u[collection] = now
}

// lately says whether a change in the collection of an object has lately had no review.
func (u unreviewed) lately(object Object, now time.Time) bool {
	return u.within(object.collection(), now) || u.within(everything, now)
}

func (u unreviewed) within(collection Object, now time.Time) bool {
	at, ok := u[collection]
	return ok && now.Sub(at) < distrust
}

func (u unreviewed) expire(now time.Time) {
	for collection := range u {
		if !u.within(collection, now) {
			delete(u, collection)
		}
	}
}

// noteUnreviewed takes note that the audit names a change of an object of which no review has come.
func (j *Joiner) noteUnreviewed(object Object) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.unreviewed.note(object, time.Now())
}
