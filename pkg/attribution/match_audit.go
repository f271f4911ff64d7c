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

// makers are the exact audit facts of the requests that may have made the event's state. The state of a new object was
// made by the request that created it, and found by all others.
func (e *evidence) makers() []*kept {
	if e.event.Operation == v1alpha1.OperationCreate {
		created := where(e.exact, func(k *kept) bool { return k.Operation == v1alpha1.OperationCreate })
		if len(created) > 0 {
			return created
		}
	}
	return e.exact
}

// tellApart is how far apart two requests have to begin so that one was first.
const tellApart = time.Millisecond

// maker returns the fact of the request that has made a state, of several audit facts which name it; nil if that is not
// certain. One request made the state; others found it, had nothing to change, and report it all the same. Those that
// follow what they watch begin after the state was made. Those that raced with the maker have seen the state before they
// were done, so that they end after it. The maker is the one that was about to make the state when it was admitted, and of
// several the one that both began and ended first. The object has to bear it out.
func maker(facts, admitted []*kept, object *unstructured.Unstructured) *kept {
	if one := oneUser(facts); one != nil {
		return one
	}
	claimants := facts
	if len(admitted) > 0 {
		claimants = where(facts, func(k *kept) bool {
			return slices.ContainsFunc(admitted, func(a *kept) bool { return a.Actor.Username == k.Actor.Username })
		})
	}
	first := earliest(claimants)
	if first == nil || !bearsOut(object, first) || slices.ContainsFunc(facts, func(k *kept) bool { return !k.Ended.After(first.Begun) }) {
		return nil
	}
	return first
}

// bearsOut says whether an object was written at the time of a request, as its managedFields tell to the second.
func bearsOut(object *unstructured.Unstructured, k *kept) bool {
	from, to := k.span()
	return writtenWithin(object, from, to)
}

// span is when a request may have written an object, as the object tells it.
func (k *kept) span() (from, to time.Time) {
	return k.Begun.Truncate(time.Second), k.ended().Add(clockSkew)
}

// earliest returns the fact of the request that both began and ended first, if that is one user's.
func earliest(facts []*kept) *kept {
	if len(facts) == 0 {
		return nil
	}
	first := slices.MinFunc(facts, func(a, b *kept) int { return a.Begun.Compare(b.Begun) })
	for _, k := range facts {
		other := !sameUser(k, first)
		if other && (k.Begun.Sub(first.Begun) < tellApart || !k.Ended.After(first.Ended)) {
			return nil
		}
	}
	return first
}

// decideNamed takes facts that tell neither uid nor resourceVersion: one user's, at the time of the event. A contradicting
// one may come until waiting ends. A fact that names the object explains one event only; what comes after it may have
// been done by somebody whom the audit does not tell of.
func (e *evidence) decideNamed(facts []*kept) (verdict, bool) {
	near := where(facts, func(k *kept) bool {
		return k.Operation == e.event.Operation && k.Collection == nil && e.near(k)
	})
	if len(near) == 0 {
		return e.decideCollected(facts)
	}
	unclaimed := where(near, func(k *kept) bool { return !k.claimed })
	if oneUser(near) == nil || len(unclaimed) == 0 {
		return verdict{author: Author{Signal: Unknown}, until: e.times.last}, true
	}
	v := by(unclaimed[0], e.times.last)
	v.claims = true
	return v, true
}

// decideCollected takes the deletions of collections that the object was in.
func (e *evidence) decideCollected(facts []*kept) (verdict, bool) {
	near := where(facts, func(k *kept) bool {
		return k.Operation == e.event.Operation && k.Collection != nil && k.Collection.selects(e.event.Object) && e.near(k)
	})
	switch one := oneUser(near); {
	case len(near) == 0:
		return verdict{}, false
	case one == nil:
		return verdict{author: Author{Signal: Unknown}, until: e.times.last}, true
	default:
		return by(one, e.times.last), true
	}
}

// near says whether the event belongs to the time of a fact's request: that of a deletion that took its time belongs to
// the time when it was asked for.
func (e *evidence) near(k *kept) bool {
	if asked, ok := askedAt(e.event.Object); ok && e.event.Operation == v1alpha1.OperationDelete {
		return wasAskedBy(asked, k)
	}
	return !e.arrived.Before(k.Begun.Add(-clockSkew)) && !e.arrived.After(k.ended().Add(clockSkew))
}

// ended is when a request was done, at the earliest if that is not known.
func (k *kept) ended() time.Time {
	if k.Ended.Before(k.Begun) {
		return k.Begun
	}
	return k.Ended
}

// selects says whether an object was in a collection. What the selectors say of fields that only the API server can read
// does not hold: no author is better than a wrong one.
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
