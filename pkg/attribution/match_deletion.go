// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// namespaceController is the user that deletes the content of a deleted namespace.
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	// maxDeleteDuration is the assumed maximum time until a DELETE request sets the deletionTimestamp, if its end is
	// unknown.
	maxDeleteDuration = 5 * time.Second
)

// decideDeletion returns the verdict about who requested a deletion, regardless of who removed the last finalizer.
func (e *evidence) decideDeletion() verdict {
	asked, delayed := deletionRequestedAt(e.pending.event.Object)
	facts := filter(e.deletions, func(k *storedFact) bool {
		if delayed {
			return requestedBy(asked, k)
		}
		return e.pending.arrived.Sub(k.arrived) <= k.deletionLife() && !e.fromOtherState(k)
	})
	audited := filter(facts, func(k *storedFact) bool { return k.Signal == Audit })
	admitted := filter(facts, func(k *storedFact) bool { return k.Signal == Admission })
	v := verdict{author: Author{Signal: Unknown}, until: e.times.unknown, unreported: true}
	switch one := oneUser(admitted); {
	case len(audited) > 0:
		v = e.combine(firstDeleter(audited), admitted)
	case one != nil && (delayed || e.sufficient(admitted)):
		v = attributedTo(one, e.times.admission)
	case one != nil:
		v = attributedTo(one, e.times.last)
	case len(admitted) > 0:
		v = e.contradicted()
	default:
		if named, ok := e.decideNamed(e.named); ok {
			v = named
		}
	}
	if v.author.Username == namespaceController {
		v.author.NamespaceDeletedBy = e.namespaceDeletedBy()
	}
	return v
}

// fromOtherState reports whether a DELETE was admitted for a state other than the object's last one. Deletions use
// compare-and-swap like other writes.
func (e *evidence) fromOtherState(k *storedFact) bool {
	return k.Signal == Admission && e.pending.known && k.Before != e.pending.predecessor
}

// deletionLife returns the maximum time between a fact about an immediate deletion and its event.
func (s *storedFact) deletionLife() time.Duration {
	if s.Signal == Admission {
		return attemptLifetime
	}
	return factsLifetime
}

// deletionRequestedAt returns when the deletion of an object was requested, to the second, if it was not deleted
// immediately.
func deletionRequestedAt(object *unstructured.Unstructured) (time.Time, bool) {
	deletion := object.GetDeletionTimestamp()
	if deletion == nil {
		return time.Time{}, false
	}
	grace := object.GetDeletionGracePeriodSeconds()
	if grace == nil {
		return deletion.Time, true
	}
	return deletion.Add(-time.Duration(*grace) * time.Second), true
}

// requestedBy reports whether a deletion may have been requested at a time by the request of a fact.
func requestedBy(asked time.Time, k *storedFact) bool {
	return !asked.Before(k.Begun.Truncate(time.Second).Add(-clockSkew)) && !asked.After(k.requestedBefore())
}

// requestedBefore returns the latest time at which the request of a fact may have requested a deletion.
func (s *storedFact) requestedBefore() time.Time {
	if s.Ended.IsZero() {
		return s.Begun.Add(maxDeleteDuration)
	}
	return s.ended().Add(clockSkew)
}

// firstDeleter returns the fact of the request that requested a deletion first, from several audit facts; nil if
// uncertain. Each fact has the resourceVersion of the object afterwards, which later requests found unchanged; the
// request that removed the object has none. A fact without uid may be about another object of the same name.
func firstDeleter(facts []*storedFact) *storedFact {
	if one := oneUser(facts); one != nil {
		return one
	}
	marking := filter(facts, func(k *storedFact) bool { return k.After != "" })
	if len(marking) == 0 || slices.ContainsFunc(facts, func(k *storedFact) bool { return k.UID == "" }) {
		return nil
	}
	first := marking[0]
	for _, k := range marking[1:] {
		if order, err := resourceversion.CompareResourceVersion(k.After, first.After); err != nil {
			return nil
		} else if order < 0 {
			first = k
		}
	}
	return earliest(filter(marking, func(k *storedFact) bool { return k.After == first.After }))
}

// namespaceDeletedBy returns the user who deleted the object's namespace, if that is certain. Earlier namespaces may have
// had the same name: an object that was created after a deletion was requested is in a newer one, since no objects can be
// created in a terminating namespace.
func (e *evidence) namespaceDeletedBy() string {
	created := e.pending.event.Object.GetCreationTimestamp()
	facts := filter(e.namespaceDeletions, func(k *storedFact) bool { return !created.After(k.requestedBefore()) })
	audited := filter(facts, func(k *storedFact) bool { return k.Signal == Audit })
	if len(audited) == 0 {
		audited = facts
	}
	if k := firstDeleter(latestDeletion(audited)); k != nil {
		return k.Actor.Username
	}
	return ""
}

// latestDeletion returns the facts about the deletion of the latest object with a name.
func latestDeletion(facts []*storedFact) []*storedFact {
	if len(facts) == 0 {
		return nil
	}
	latest := slices.MaxFunc(facts, func(a, b *storedFact) int { return a.Begun.Compare(b.Begun) })
	return filter(facts, func(k *storedFact) bool { return k.UID == "" || latest.UID == "" || k.UID == latest.UID })
}
