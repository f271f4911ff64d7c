// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// attemptLifetime is the maximum time between the review of a request and its event. After its review, a request still
// waits for other webhooks, by default up to 10 seconds, and for the write.
const attemptLifetime = 10 * time.Second

// promptLimit is the usual maximum time between the review of a request and its event. A request that took longer may
// have been refused by another webhook.
const promptLimit = time.Second

// admitted returns the admission facts of requests for exactly the change of the event. An API server writes with
// compare-and-swap, so that at most one of all attempts from one resourceVersion succeeds.
func (e *evidence) admitted() []*storedFact {
	recent := e.recentAttempts()
	wanted := filter(recent, e.matches)
	if e.pending.event.Operation != v1alpha1.OperationUpdate {
		return wanted
	}
	origin, ok := e.origin()
	if ok && !slices.ContainsFunc(wanted, func(k *storedFact) bool { return k.Before == origin }) || !ok && !oneOrigin(recent) {
		return nil
	}
	return wanted
}

// origin returns the resourceVersion that the event's request started from. If the predecessor is unknown, the object
// must have been unchanged for some time, and all attempts since then must start from the same resourceVersion. An API
// server that read an older state from its cache is detected by the attempts that follow, as it retries.
func (e *evidence) origin() (version string, ok bool) {
	if e.pending.known || e.pending.unchangedSince.IsZero() {
		return e.pending.predecessor, e.pending.known
	}
	attempts := e.attemptsSince(e.pending.unchangedSince.Add(-clockSkew)) // A report may come late.
	if len(attempts) == 0 || !oneState(attempts) {
		return "", false
	}
	return attempts[0].Before, true
}

// attemptsSince returns the attempts that arrived at or after a time.
func (e *evidence) attemptsSince(since time.Time) []*storedFact {
	return filter(e.recentAttempts(), func(k *storedFact) bool { return !k.arrived.Before(since) })
}

// recentAttempts returns the attempts that may have led to the event.
func (e *evidence) recentAttempts() []*storedFact {
	return filter(e.attempts, func(k *storedFact) bool { return e.pending.arrived.Sub(k.arrived) <= attemptLifetime })
}

// oneOrigin reports whether all attempts, the event's own among them, start from one resourceVersion or are one user's.
// It then does not matter which of them succeeded.
func oneOrigin(attempts []*storedFact) bool { return oneUser(attempts) != nil || oneState(attempts) }

// oneState reports whether all attempts start from one resourceVersion.
func oneState(attempts []*storedFact) bool {
	return !slices.ContainsFunc(attempts, func(k *storedFact) bool { return k.Before != attempts[0].Before })
}

// matches reports whether an attempt would have led to the state of the event.
func (e *evidence) matches(k *storedFact) bool {
	if k.Operation != e.pending.event.Operation || e.pending.known && k.Before != e.pending.predecessor {
		return false
	}
	if k.Replicas != nil {
		replicas, ok := replicasOf(e.pending.event.Object)
		return ok && replicas == *k.Replicas
	}
	return k.Content != "" && k.Content == e.pending.content()
}

func replicasOf(object *unstructured.Unstructured) (int64, bool) {
	replicas, ok, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return replicas, ok && err == nil
}

// decideAdmitted returns the verdict if there are only admission facts. Each attempt to create has a new uid, so that no
// other user's attempt can match. Other attempts to update may still be reported: another user may have attempted the
// same change and been refused. Reviews of these arrive before the event or shortly after it, so the event waits for
// them. It also waits for the audit if reviews are not sufficient.
//
// One case is not detected: an attempt was refused, another user then made the same change from the same resourceVersion
// within promptLimit, and the fact of that one was lost, as the first one lost in its collection. Without audit it need
// not be the first one lost, and attemptLifetime applies.
func (e *evidence) decideAdmitted(admitted []*storedFact) verdict {
	one, until := oneUser(admitted), e.times.last
	if one == nil {
		return e.contradicted()
	}
	if e.pending.event.Operation == v1alpha1.OperationCreate {
		until = e.pending.arrived
	} else if _, ok := e.origin(); ok && e.sufficient(admitted) {
		until = e.times.admission
	}
	return attributedTo(one, until)
}

// sufficient reports whether one of the attempts, all of one user, is certain to be the request that was carried out.
// Reviews must arrive without gaps: one of the attempts arrived within promptLimit before the event, after the term began
// and after the object was last changed, so that the API server sent reviews at that time and they were received; and
// none was missing recently.
func (e *evidence) sufficient(admitted []*storedFact) bool {
	return !e.reviewsMissed && slices.ContainsFunc(admitted, func(k *storedFact) bool {
		return !k.recovered && e.pending.arrived.Sub(k.arrived) <= promptLimit && !k.arrived.Before(e.pending.unchangedSince)
	})
}
