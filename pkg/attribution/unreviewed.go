// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import "time"

const (
	// unreviewedLifetime is how long the reviews of a collection count as incomplete after one of them was missing.
	unreviewedLifetime = time.Minute
	// unreviewedLimit bounds the collections that are recorded. Beyond it, the reviews of all collections count as
	// incomplete.
	unreviewedLimit = 10_000
)

// unreviewed records when a change was last audited without a review, by collection: a namespace and a type, or a type.
// An API server does not send a review of each change: its webhook configuration excludes types and namespaces, and it
// ignores failures to reach the webhook.
type unreviewed struct{ lately[Object] }

// allCollections represents all collections once the limit is reached.
var allCollections = Object{}

// note records a change without review.
func (u unreviewed) note(object Object, now time.Time) {
	collection := object.collection()
	if _, ok := u.lately[collection]; !ok && len(u.lately) >= unreviewedLimit {
		collection = allCollections
	}
	u.lately[collection] = now
}

// has reports whether a change in the collection of an object recently had no review.
func (u unreviewed) has(object Object, now time.Time) bool {
	return u.within(object.collection(), unreviewedLifetime, now) || u.within(allCollections, unreviewedLifetime, now)
}
