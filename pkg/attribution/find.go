// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Find returns the author of a state that was found by comparison, without waiting: the user who created the object's
// resourceVersion, unless other users have recently written the object, whose changes the comparison may include; or the
// user who deleted it, for which namespace and name suffice. Only audit facts are used. If an event has already reported
// the change, a difference was caused by a change of what the caller wants, and the author is unknown.
func (j *Joiner) Find(event Event) Author {
	trail := j.trailOf(event)
	found := trail.find()
	if found != nil && j.alreadyReported(event.Operation, trail.object, found) {
		found = nil
	}
	return auditedAuthor(found)
}

// FindSince returns the author of all changes of an object, except for its status, since a time at which its content was
// known: the only user whose writes were audited since then, if the object's managedFields confirm that no other user
// wrote it. If the object was deleted, namespace and name suffice, and the author is the user who deleted it. Like Find
// it does not wait. Unlike Find it is for callers that know that the content has changed: changes that events have
// reported count, and the status may have been changed since.
func (j *Joiner) FindSince(event Event, since time.Time) Author {
	return auditedAuthor(j.trailOf(event).findSince(since.Add(-clockSkew)))
}

// LongestAuditWait returns the longest time after a change in which AuditWait expects audit facts about it. maxWait is Config.MaxWait.
func LongestAuditWait(maxWait time.Duration) time.Duration { return clockSkew + maxWait }

// AuditWait returns how long to wait until FindSince considers all audit facts about the present state of an object: those
// about its last write may arrive for LongestAuditWait. It is zero if no audit is received. The time of a deletion is not
// known, so that the longest time is returned as long as there is no fact about it: the caller must limit it.
func (j *Joiner) AuditWait(event Event) time.Duration {
	now := time.Now()
	object, by := objectOf(event.Resource.GroupResource(), event.Object), writingOf(&event, now)
	newest, _, _ := newestEntry(event.Object)
	j.mutex.Lock()
	defer j.mutex.Unlock()
	trail, grace := j.facts.trail(event, now), j.expected.grace(Audit, object, now)
	expected := j.expected.expectsReport(object, by, now) || j.expected.maxWait > 0 && j.expected.sources.quiet(object, now)
	if event.Operation == v1alpha1.OperationDelete {
		if grace == 0 && !expected || len(trail.deletions) > 0 {
			return 0
		}
		return LongestAuditWait(j.expected.maxWait)
	}
	written, err := time.Parse(time.RFC3339, newest.time)
	if err != nil {
		return 0
	}
	if grace > 0 && j.expected.sources.behind(object, written) || expected && !trail.reports(written) {
		grace = j.expected.maxWait
	}
	if grace == 0 {
		return 0
	}
	return min(max(0, written.Add(clockSkew+grace).Sub(now)), clockSkew+grace)
}

// auditedAuthor returns the user of an audit fact, or an unknown author without one.
func auditedAuthor(found *storedFact) Author {
	if found == nil {
		return Author{Signal: Unknown}
	}
	return Author{Actor: found.Actor, Signal: Audit}
}

// trailOf returns the present facts for an event that was found by comparison.
func (j *Joiner) trailOf(event Event) *auditTrail {
	now := time.Now()
	j.mutex.Lock()
	defer j.mutex.Unlock()
	trail := j.facts.trail(event, now)
	trail.complete = now.Add(-clockSkew - j.expected.grace(Audit, trail.object, now))
	return trail
}

// alreadyReported reports whether the change of a fact has been submitted as an event and delivered.
func (j *Joiner) alreadyReported(operation v1alpha1.Operation, object Object, found *storedFact) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return !j.queues.waiting(object) && j.observed.reported(operation, found)
}
