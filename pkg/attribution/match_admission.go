// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// attemptLife is how long before an event its request can have been admitted: what is left to do then is what other
// webhooks take, 10 seconds by default, and the write.
const attemptLife = 10 * time.Second

// promptly is how long before an event its request was usually admitted. One that took longer may have been refused by
// another webhook.
const promptly = time.Second

// admitted are the admission facts of requests that wanted the very change that the event tells of. An API server writes
// by compare and swap, so that of all attempts from one resourceVersion at most one succeeds.
func (e *evidence) admitted() []*kept {
	recent := e.recentAttempts()
	wanted := where(recent, e.wanted)
	if e.event.Operation != v1alpha1.OperationUpdate {
		return wanted
	}
	origin, ok := e.origin()
	if ok && !slices.ContainsFunc(wanted, func(k *kept) bool { return k.Before == origin }) || !ok && !oneOrigin(recent) {
		return nil
	}
	return wanted
}

// origin returns the resourceVersion that the event's request started from. Where the predecessor is not known, the object
// must have had no other for a time, and all attempts since then must start from one. An API server that remembers an older
// state is found out by the attempts that follow: it tries again.
func (e *evidence) origin() (version string, ok bool) {
	if e.known || e.unchangedSince.IsZero() {
		return e.predecessor, e.known
	}
	attempts := e.attemptsSince(e.unchangedSince.Add(-clockSkew)) // A report may come late.
	if len(attempts) == 0 || !oneState(attempts) {
		return "", false
	}
	return attempts[0].Before, true
}

// attemptsSince are those that came at a time or later.
func (e *evidence) attemptsSince(since time.Time) []*kept {
	return where(e.recentAttempts(), func(k *kept) bool { return !k.arrived.Before(since) })
}

// recentAttempts are those that can have succeeded with the event.
func (e *evidence) recentAttempts() []*kept {
	return where(e.attempts, func(k *kept) bool { return e.arrived.Sub(k.arrived) <= attemptLife })
}

// oneOrigin says whether it is no matter which of the attempts, the event's own among them, has succeeded: all start from
// one resourceVersion, or are one user's.
func oneOrigin(attempts []*kept) bool { return oneUser(attempts) != nil || oneState(attempts) }

// oneState says whether all attempts start from one resourceVersion.
func oneState(attempts []*kept) bool {
	return !slices.ContainsFunc(attempts, func(k *kept) bool { return k.Before != attempts[0].Before })
}

// wanted says whether an attempt would have made what the event shows.
func (e *evidence) wanted(k *kept) bool {
	if k.Operation != e.event.Operation || e.known && k.Before != e.predecessor {
		return false
	}
	if k.Replicas != nil {
		replicas, ok := replicasOf(e.event.Object)
		return ok && replicas == *k.Replicas
	}
	return k.Content != "" && k.Content == e.content()
}

func replicasOf(object *unstructured.Unstructured) (int64, bool) {
	replicas, ok, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return replicas, ok && err == nil
}

// decideAdmitted finds the author without the audit's help. A uid is new with each attempt to create, so that nobody else's
// can be meant. Of attempts to update others may still be told: somebody else may have wanted the same, and been refused.
// Reviews of these come before the event or shortly after it, so the event waits for them. It waits for the audit as well
// where these do not suffice.
//
// What cannot be told: that an attempt was refused, and another user then did the same from the same resourceVersion
// promptly, whose own fact was lost as the first one in its collection. Where there is no audit, it need not be the first
// one, and attemptLife counts.
func (e *evidence) decideAdmitted(admitted []*kept) verdict {
	one, until := oneUser(admitted), e.times.last
	if one == nil {
		return e.contradicted()
	}
	if e.event.Operation == v1alpha1.OperationCreate {
		until = e.arrived
	} else if _, ok := e.origin(); ok && e.suffice(admitted) {
		until = e.times.admission
	}
	return by(one, until)
}

// suffice says whether one of the attempts, which are one user's, is certain to be the one that was carried out. Reviews have
// to come without gaps: one of the attempts came promptly before the event, since the term began and since the object was
// last changed, so that at that moment the API server sent its reviews, and they were received; and lately none was missing.
func (e *evidence) suffice(admitted []*kept) bool {
	return !e.reviewsMissed && slices.ContainsFunc(admitted, func(k *kept) bool {
		return !k.recovered && e.arrived.Sub(k.arrived) <= promptly && !k.arrived.Before(e.unchangedSince)
	})
}
