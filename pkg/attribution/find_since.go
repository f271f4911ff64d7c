// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// FindSince returns the author of all changes of an object, except for its status, since a time at which its content was
// known: the only user whose writes were audited since then, if the object's managedFields confirm that no other user
// wrote it. If the object was deleted, namespace and name suffice, and the author is the user who deleted it. Like Find
// it does not wait. Unlike Find it is for callers that know that the content has changed: changes that events have
// reported count, and the status may have been changed since.
func (j *Joiner) FindSince(event Event, since time.Time) Author {
	since = since.Add(-clockSkew)
	var found *storedFact
	if event.Operation == v1alpha1.OperationDelete {
		found = j.deleterSince(event, since)
	} else {
		found = j.writerSince(event, since)
	}
	if found == nil {
		return Author{Signal: Unknown}
	}
	return Author{Actor: found.Actor, Signal: Audit}
}

// deleterSince returns the fact of the request that deleted an object. A fact without uid may be about an earlier object.
func (j *Joiner) deleterSince(event Event, since time.Time) *storedFact {
	object, uid := objectOf(event.Resource.GroupResource(), event.Object), event.Object.GetUID()
	return firstDeleter(latestDeletion(filter(j.auditedDeletions(object, uid), func(k *storedFact) bool {
		return k.UID != "" && k.UID == uid || !k.ended().Before(since)
	})))
}

// writerSince returns a fact of the only user who has written an object, once all audit facts should have arrived.
func (j *Joiner) writerSince(event Event, since time.Time) *storedFact {
	facts := j.auditedWrites(event.Object, since)
	newest, ok := confirmedSince(event.Object, facts, since)
	if !ok || j.auditIncomplete(newest, objectOf(event.Resource.GroupResource(), event.Object)) {
		return nil
	}
	return oneUser(facts)
}

// auditedWrites returns the audit facts about writes of an object since a time, up to its current state.
func (j *Joiner) auditedWrites(object *unstructured.Unstructured, since time.Time) []*storedFact {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return filter(j.factsOf(uid), func(k *storedFact) bool {
		if k.Signal != Audit || isDeletion(k) || k.ended().Before(since) {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(k.After, version)
		return err == nil && order <= 0
	})
}

func (j *Joiner) factsOf(uid types.UID) []*storedFact {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return slices.Clone(j.recent.ofUID[uid])
}

// auditIncomplete reports whether audit facts about writes at a time may still arrive.
func (j *Joiner) auditIncomplete(written time.Time, object Object) bool {
	now := time.Now()
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return written.Add(clockSkew + j.sources.grace(Audit, object, now, j.config.MaxWait)).After(now)
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

// at reports whether a request may have written an object at a time.
func (k *storedFact) at(written time.Time) bool {
	from, to := k.span()
	return !written.Before(from) && !written.After(to)
}
