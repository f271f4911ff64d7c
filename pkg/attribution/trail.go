// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// auditTrail has the facts about an object whose state or deletion was found by comparison, at one time. The author is a
// function of it, as a verdict is of evidence.
type auditTrail struct {
	event  Event
	object Object

	// deletions are the audited deletions of the object, also of earlier objects of its name, for a DELETE.
	deletions []*storedFact
	// exact are the audit facts with the object's resourceVersion, ofUID all recent facts with its uid, for a write.
	exact, ofUID []*storedFact
	// named are the recent audit facts that have only the object's name, as those about Secrets, for a write.
	named []*storedFact
	// complete is the time up to which the audit facts about writes of the object should have arrived.
	complete time.Time
}

// find returns the fact of the request that created the state of the object, or that deleted it; nil if uncertain.
func (t *auditTrail) find() *storedFact {
	if t.event.Operation == v1alpha1.OperationDelete {
		return firstDeleter(latestDeletion(t.deletions))
	}
	return t.writer()
}

// writer returns the fact of the request that created the state of the object, nil if other users have recently written
// it. A later request that found the state and changed nothing is reported like the one that created it, whose fact may
// have expired. So the object's managedFields must confirm the time.
func (t *auditTrail) writer() *storedFact {
	state := t.event.Object
	found := firstWriter(filter(t.exact, func(k *storedFact) bool { return confirmsWrite(state, k) }), nil, state)
	if found == nil {
		found = writerOf(t.object, t.ofUID, state)
	}
	if found == nil || t.writtenByOthers(found) {
		return nil
	}
	return found
}

// writtenByOthers reports whether audit facts name other users for other states of the object than that of a fact.
func (t *auditTrail) writtenByOthers(found *storedFact) bool {
	return slices.ContainsFunc(t.ofUID, func(k *storedFact) bool {
		return k.Signal == Audit && !isDeletion(k) && k.After != found.After && !sameUser(k, found)
	})
}

// findSince returns a fact of the only user who has written the object since a time, or the fact of the request that
// deleted it; nil if uncertain.
func (t *auditTrail) findSince(since time.Time) *storedFact {
	if t.event.Operation == v1alpha1.OperationDelete {
		return t.deleterSince(since)
	}
	return t.writerSince(since)
}

// deleterSince returns the fact of the request that deleted the object. A fact without uid may be about an earlier object.
func (t *auditTrail) deleterSince(since time.Time) *storedFact {
	uid := t.event.Object.GetUID()
	return firstDeleter(latestDeletion(filter(t.deletions, func(k *storedFact) bool {
		return k.UID != "" && k.UID == uid || !k.ended().Before(since)
	})))
}

// writerSince returns a fact of the only user who has written the object, once all audit facts should have arrived.
func (t *auditTrail) writerSince(since time.Time) *storedFact {
	facts := t.writesSince(since)
	newest, ok := confirmedSince(t.event.Object, facts, since)
	if !ok || newest.After(t.complete) {
		return nil
	}
	return oneUser(facts)
}

// writesSince returns the audit facts about writes of the object since a time, up to its current state. Those that have no
// version may be about later writes, too: if these are of another user, no author is named.
func (t *auditTrail) writesSince(since time.Time) []*storedFact {
	version := t.event.Object.GetResourceVersion()
	exact := filter(t.ofUID, func(k *storedFact) bool {
		if k.Signal != Audit || isDeletion(k) || k.ended().Before(since) {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(k.After, version)
		return err == nil && order <= 0
	})
	return append(exact, filter(t.named, func(k *storedFact) bool { return !k.ended().Before(since) })...)
}

// confirmedSince reports whether each managedFields entry since a time matches one of the requests, and returns the time
// of the newest. An object without managedFields confirms nothing.
func confirmedSince(object *unstructured.Unstructured, facts []*storedFact, since time.Time) (newest time.Time, ok bool) {
	for entry := range managedEntries(object) {
		if entry.subresource == "status" {
			continue
		}
		written, err := time.Parse(time.RFC3339, entry.time)
		if err == nil && written.Before(since.Truncate(time.Second)) {
			continue
		}
		if err != nil || !slices.ContainsFunc(facts, func(k *storedFact) bool { return k.at(written) }) {
			return time.Time{}, false
		}
		if written.After(newest) {
			newest = written
		}
	}
	return newest, !newest.IsZero()
}

// reports reports whether a fact is about a write of the object at a time.
func (t *auditTrail) reports(written time.Time) bool {
	return slices.ContainsFunc(t.writesSince(written), func(k *storedFact) bool { return k.at(written) })
}

// at reports whether a request may have written an object at a time.
func (s *storedFact) at(written time.Time) bool {
	from, to := s.span()
	return !written.Before(from) && !written.After(to)
}
