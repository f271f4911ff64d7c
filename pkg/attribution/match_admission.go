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

// admitted are the admission facts of requests that wanted the very change that the event tells of. An API server writes
// by compare and swap, so that of all attempts from one resourceVersion at most one succeeds.
func (e *evidence) admitted() []*kept {
	recent := where(e.attempts, func(k *kept) bool { return e.arrived.Sub(k.arrived) <= attemptLife })
	if e.event.Operation == v1alpha1.OperationUpdate && !e.known && !oneOrigin(recent) {
		return nil
	}
	return where(recent, e.wanted)
}

// oneOrigin says whether it is no matter which of the attempts, the event's own among them, has succeeded: all start from
// one resourceVersion, or are one user's.
func oneOrigin(attempts []*kept) bool {
	return oneUser(attempts) != nil ||
		!slices.ContainsFunc(attempts, func(k *kept) bool { return k.Before != attempts[0].Before })
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
//
// What cannot be told: that an attempt was refused, and another user then did the same from the same resourceVersion within
// attemptLife, whose own fact was lost.
func (e *evidence) decideAdmitted(admitted []*kept) verdict {
	one := oneUser(admitted)
	switch {
	case one == nil:
		return e.contradicted()
	case e.event.Operation == v1alpha1.OperationCreate:
		return by(one, e.arrived)
	case e.known:
		return by(one, e.times.admission)
	}
	return by(one, e.times.last)
}
