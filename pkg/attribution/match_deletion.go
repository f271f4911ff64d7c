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
	// namespaceController deletes what is in a namespace that is deleted.
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	// askingTime is how long a request to delete may take until it sets the deletionTimestamp, if its end is not known.
	askingTime = 5 * time.Second
)

// decideDeletion finds out who asked for a deletion, which is not who removed the last finalizer.
func (e *evidence) decideDeletion() verdict {
	asked, delayed := askedAt(e.event.Object)
	facts := where(e.deletions, func(k *kept) bool {
		if delayed {
			return wasAskedBy(asked, k)
		}
		return e.arrived.Sub(k.arrived) <= k.deletionLife() && !e.fromElsewhere(k)
	})
	audited := where(facts, func(k *kept) bool { return k.Signal == Audit })
	admitted := where(facts, func(k *kept) bool { return k.Signal == Admission })
	v := verdict{author: Author{Signal: Unknown}, until: e.times.last}
	switch one := oneUser(admitted); {
	case len(audited) > 0:
		v = e.weigh(asker(audited), admitted)
	case one != nil && (delayed || e.suffice(admitted)):
		v = by(one, e.times.admission)
	case one != nil:
		v = by(one, e.times.last)
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

// fromElsewhere says whether a request to delete was admitted for another state than the object's last one. Deletions are
// compared and swapped like other writes.
func (e *evidence) fromElsewhere(k *kept) bool {
	return k.Signal == Admission && e.known && k.Before != e.predecessor
}

// deletionLife is how long a deletion that takes no time may have been told before its event.
func (k *kept) deletionLife() time.Duration {
	if k.Signal == Admission {
		return attemptLife
	}
	return factsLifetime
}

// askedAt returns when the deletion of an object was asked for that is not deleted at once. It is to the second.
func askedAt(object *unstructured.Unstructured) (time.Time, bool) {
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

// wasAskedBy says whether the request of a fact was under way when a deletion was asked for.
func wasAskedBy(asked time.Time, k *kept) bool {
	return !asked.Before(k.Begun.Truncate(time.Second).Add(-clockSkew)) && !asked.After(k.askedBefore())
}

// askedBefore is when the request of a fact had asked for a deletion at the latest.
func (k *kept) askedBefore() time.Time {
	if k.Ended.IsZero() {
		return k.Begun.Add(askingTime)
	}
	return k.ended().Add(clockSkew)
}

// asker returns the fact of the request that asked for a deletion first, of several audit facts about requests that did;
// nil if that is not certain. Each reports the state that the object had afterwards, which later ones have found; the one that
// removed it reports none. One that tells no uid may be about another object of the same name.
func asker(facts []*kept) *kept {
	if one := oneUser(facts); one != nil {
		return one
	}
	marking := where(facts, func(k *kept) bool { return k.After != "" })
	if len(marking) == 0 || slices.ContainsFunc(facts, func(k *kept) bool { return k.UID == "" }) {
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
	return earliest(where(marking, func(k *kept) bool { return k.After == first.After }))
}

// namespaceDeletedBy returns the user who deleted the namespace that the object was in, if that is certain. The name may
// have been that of others before: what was created after a deletion was asked for is in another one, since nothing can be
// created in a namespace that goes.
func (e *evidence) namespaceDeletedBy() string {
	created := e.event.Object.GetCreationTimestamp()
	facts := where(e.namespaceDeletions, func(k *kept) bool { return !created.After(k.askedBefore()) })
	audited := where(facts, func(k *kept) bool { return k.Signal == Audit })
	if len(audited) == 0 {
		audited = facts
	}
	if k := asker(latestDeletion(audited)); k != nil {
		return k.Actor.Username
	}
	return ""
}

// latestDeletion returns the facts about the deletion of the object that had a name last.
func latestDeletion(facts []*kept) []*kept {
	if len(facts) == 0 {
		return nil
	}
	latest := slices.MaxFunc(facts, func(a, b *kept) int { return a.Begun.Compare(b.Begun) })
	return where(facts, func(k *kept) bool { return k.UID == "" || latest.UID == "" || k.UID == latest.UID })
}
