// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// writers returns the exact audit facts of the requests that may have created the event's state. The state of a new
// object was created by its CREATE request; all others found it.
func (e *evidence) writers() []*storedFact {
	if e.pending.event.Operation == v1alpha1.OperationCreate {
		created := filter(e.exact, func(k *storedFact) bool { return k.Operation == v1alpha1.OperationCreate })
		if len(created) > 0 {
			return created
		}
	}
	return e.exact
}

// minOrderGap is the minimum difference between the start of two requests to determine which was first.
const minOrderGap = time.Millisecond

// firstWriter returns the fact of the request that created a state, from several audit facts that have its
// resourceVersion; nil if uncertain. One request created the state; the others found it, changed nothing, and are audited
// with the same resourceVersion. Those that react to a watch begin after the state was created. Those that raced with the
// writer saw the state before they completed, so they end after it. The writer is the one whose review matches, and of
// several the one that both began and ended first. The object's managedFields must confirm its time.
func firstWriter(facts, admitted []*storedFact, object *unstructured.Unstructured) *storedFact {
	if one := oneUser(facts); one != nil {
		return one
	}
	claimants := facts
	if len(admitted) > 0 {
		claimants = filter(facts, func(k *storedFact) bool {
			return slices.ContainsFunc(admitted, func(a *storedFact) bool { return a.Actor.Username == k.Actor.Username })
		})
	}
	first := earliest(claimants)
	if first == nil || !confirmsWrite(object, first) ||
		slices.ContainsFunc(facts, func(k *storedFact) bool { return !k.Ended.After(first.Begun) }) {
		return nil
	}
	return first
}

// confirmsWrite reports whether the object's managedFields have an entry, to the second, for the time of a request.
func confirmsWrite(object *unstructured.Unstructured, k *storedFact) bool {
	from, to := k.span()
	return writtenWithin(object, from, to)
}

// span returns the period within which a request may have written an object, at the precision of managedFields.
func (s *storedFact) span() (from, to time.Time) {
	return s.Begun.Truncate(time.Second), s.ended().Add(clockSkew)
}

// earliest returns the fact of the request that both began and ended first, if all such facts are one user's.
func earliest(facts []*storedFact) *storedFact {
	if len(facts) == 0 {
		return nil
	}
	first := slices.MinFunc(facts, func(a, b *storedFact) int { return a.Begun.Compare(b.Begun) })
	for _, k := range facts {
		other := !sameUser(k, first)
		if other && (k.Begun.Sub(first.Begun) < minOrderGap || !k.Ended.After(first.Ended)) {
			return nil
		}
	}
	return first
}

// decideNamed returns a verdict from facts that have neither uid nor resourceVersion: those of one user, at the time of
// the event. A contradicting fact may arrive until waiting ends. Such a fact explains one event only; a later change may
// be from a user who is not audited. The managedFields of a written object must confirm the time: after an interruption, a
// watch delivers older states, too, at the time of a later request.
func (e *evidence) decideNamed(facts []*storedFact) (verdict, bool) {
	near := filter(facts, func(k *storedFact) bool {
		return k.Operation == e.pending.event.Operation && k.Collection == nil && e.matchesTime(k) &&
			(k.Operation == v1alpha1.OperationDelete || confirmsWrite(e.pending.event.Object, k))
	})
	if len(near) == 0 {
		return e.decideCollected(facts)
	}
	unclaimed := filter(near, func(k *storedFact) bool { return !k.claimed })
	if oneUser(near) == nil || len(unclaimed) == 0 {
		return verdict{author: Author{Signal: Unknown}, until: e.times.last}, true
	}
	v := attributedTo(unclaimed[0], e.times.last)
	v.claims = true
	return v, true
}

// decideCollected returns a verdict from the deletions of collections that selected the object.
func (e *evidence) decideCollected(facts []*storedFact) (verdict, bool) {
	near := filter(facts, func(k *storedFact) bool {
		return k.Operation == e.pending.event.Operation && k.Collection != nil && k.Collection.selects(e.pending.event.Object) && e.matchesTime(k)
	})
	switch one := oneUser(near); {
	case len(near) == 0:
		return verdict{}, false
	case one == nil:
		return verdict{author: Author{Signal: Unknown}, until: e.times.last}, true
	default:
		return attributedTo(one, e.times.last), true
	}
}

// matchesTime reports whether the event matches the time of a fact's request. For a deletion that was delayed, the time
// at which it was requested counts.
func (e *evidence) matchesTime(k *storedFact) bool {
	if asked, ok := deletionRequestedAt(e.pending.event.Object); ok && e.pending.event.Operation == v1alpha1.OperationDelete {
		return requestedBy(asked, k)
	}
	return !e.pending.arrived.Before(k.Begun.Add(-clockSkew)) && !e.pending.arrived.After(k.ended().Add(clockSkew))
}

// ended returns when a request was completed, or when it began if that is unknown.
func (s *storedFact) ended() time.Time {
	if s.Ended.Before(s.Begun) {
		return s.Begun
	}
	return s.Ended
}

// selects reports whether a collection selected an object. It returns false if a field selector uses fields that only the
// API server can evaluate: an unknown author is better than a wrong one.
func (c *Collection) selects(object *unstructured.Unstructured) bool {
	byLabel, err := labels.Parse(c.LabelSelector)
	if err != nil || !byLabel.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	byField, err := fields.ParseSelector(c.FieldSelector)
	if err != nil {
		return false
	}
	known := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	for _, requirement := range byField.Requirements() {
		if !known.Has(requirement.Field) {
			return false
		}
	}
	return byField.Matches(known)
}
