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

// FindSince returns the author of what has changed in an object, status aside, since it was known as it was at a time: the
// only user whom the audit tells to have written it since then, if the object bears out that nobody else has. Where it is
// gone, namespace and name suffice, and the author is who deleted it. Like Find it does not wait; unlike Find it is for those
// who know that the content has changed: what events have told of counts, and so does a state that others have given
// another status since.
func (j *Joiner) FindSince(event Event, since time.Time) Author {
	since = since.Add(-clockSkew)
	var found *kept
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

// deleterSince returns the fact of who asked for the deletion of an object. What tells no uid may be about an earlier one.
func (j *Joiner) deleterSince(event Event, since time.Time) *kept {
	object, uid := objectOf(event.Resource.GroupResource(), event.Object), event.Object.GetUID()
	return asker(latestDeletion(where(j.auditedDeletions(object, uid), func(k *kept) bool {
		return k.UID != "" && k.UID == uid || !k.ended().Before(since)
	})))
}

// writerSince returns a fact of the only user who has written an object, if the audit has had the time to tell of others.
func (j *Joiner) writerSince(event Event, since time.Time) *kept {
	facts := j.auditedWrites(event.Object, since)
	newest, ok := bornOut(event.Object, facts, since)
	if !ok || j.auditTellsLaterThan(newest, objectOf(event.Resource.GroupResource(), event.Object)) {
		return nil
	}
	return oneUser(facts)
}

// auditedWrites are the facts about writes of an object since a time, up to the state that it has.
func (j *Joiner) auditedWrites(object *unstructured.Unstructured, since time.Time) []*kept {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return where(j.factsOf(uid), func(k *kept) bool {
		if k.Signal != Audit || isDeletion(k) || k.ended().Before(since) {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(k.After, version)
		return err == nil && order <= 0
	})
}

func (j *Joiner) factsOf(uid types.UID) []*kept {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return slices.Clone(j.recent.ofUID[uid])
}

// auditTellsLaterThan says whether the audit may still tell of writes of the time given.
func (j *Joiner) auditTellsLaterThan(written time.Time, object Object) bool {
	now := time.Now()
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return written.Add(clockSkew + j.sources.grace(Audit, object, now, j.config.MaxWait)).After(now)
}

// bornOut says whether each manager that has written an object since a time did it while one of the requests was carried out,
// and when the last one did. An object that says nothing of its managers bears nothing out.
func bornOut(object *unstructured.Unstructured, facts []*kept, since time.Time) (newest time.Time, ok bool) {
	for entry := range managedEntries(object) {
		if entry.subresource == "status" {
			continue
		}
		written, err := time.Parse(time.RFC3339, entry.time)
		if err == nil && written.Before(since.Truncate(time.Second)) {
			continue
		}
		if err != nil || !slices.ContainsFunc(facts, func(k *kept) bool { return k.at(written) }) {
			return time.Time{}, false
		}
		if written.After(newest) {
			newest = written
		}
	}
	return newest, !newest.IsZero()
}

// at says whether a request may have written what was written at a time.
func (k *kept) at(written time.Time) bool {
	from, to := k.span()
	return !written.Before(from) && !written.After(to)
}
