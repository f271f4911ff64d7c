// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// evidence is everything known about one event at one time. The rules (the files match_*.go) are functions of it.
type evidence struct {
	pending *pendingEvent

	// exact are the audit facts with the resourceVersion of the event.
	exact []*storedFact
	// writer is the fact of the request that wrote the event's object except for its status, if this server serves the
	// kind. It is nil if that is uncertain, and counts only if no fact is exact.
	writer *storedFact
	// attempts are admission facts about writes of the object: those from the predecessor if it is known, else all.
	attempts []*storedFact
	// named are audit facts that have the object's name but no uid, and collections that may have selected it.
	named []*storedFact
	// deletions are the facts about deletions of the object's uid.
	deletions []*storedFact
	// namespaceDeletions are the facts about deletions of the object's namespace.
	namespaceDeletions []*storedFact

	// reviewsMissed is set if a change in the object's type and namespace was recently audited without a review.
	reviewsMissed bool

	times waitingTimes
}

// waitingTimes are the times until which more facts about an event are expected. None is before the event's arrival.
type waitingTimes struct {
	// audit and admission are the times by which all facts of a source should have arrived, as far as measured.
	audit, admission time.Time
	// last is the time at which waiting ends if there are facts about the event.
	last time.Time
	// usual is the time after which facts that may be about a later request are too late. It is later than last while the audit is behind.
	usual time.Time
	// unknown is the time at which waiting ends, or is considered again, if there are no facts.
	unknown time.Time
}

// dropLate drops facts that arrived after the usual time and may be about a later request: reviews, and facts without a uid about requests
// that may have begun after the event, as the clocks of API servers differ from ours by up to clockSkew. A fact is sent when its request has
// ended, so one without a uid is as much later as its request took: the deletion of a large collection takes seconds. Facts about the very
// state of the object, or the deletion of its uid, are never too late.
func (e *evidence) dropLate() {
	inTime := func(k *storedFact) bool { return !k.arrived.After(e.times.usual) }
	begunInTime := func(k *storedFact) bool { return !k.arrived.Add(k.Begun.Sub(k.ended())).After(e.times.usual) }
	begunBefore := func(k *storedFact) bool { return !k.Begun.Add(clockSkew).After(e.pending.arrived) }
	e.attempts = filter(e.attempts, inTime)
	e.named = filter(e.named, func(k *storedFact) bool { return begunInTime(k) || begunBefore(k) })
	e.deletions = filter(e.deletions, func(k *storedFact) bool { return k.Signal == Audit || inTime(k) })
}

// soonest returns the time by which all facts of one of the sources should have arrived.
func (t waitingTimes) soonest() time.Time {
	if t.admission.Before(t.audit) {
		return t.admission
	}
	return t.audit
}

// verdict is the result of evaluating evidence.
type verdict struct {
	author Author
	// until is the time from which the verdict is final, unless other facts arrive before.
	until time.Time
	// contradiction is set if facts disagree.
	contradiction bool
	// fact is the fact that the author is from, if any. If claims is set, it explains no other event.
	fact   *storedFact
	claims bool
	// unreviewed is set if the change was audited but no review of it arrived.
	unreviewed bool
	// unreported is set if there are no facts about the change.
	unreported bool
}

// attributedTo returns a verdict for the user of a fact.
func attributedTo(k *storedFact, until time.Time) verdict {
	return verdict{author: Author{Actor: k.Actor, Signal: k.Signal}, until: until, fact: k}
}

// contradicted returns the verdict for facts that disagree. Further facts may still resolve it.
func (e *evidence) contradicted() verdict {
	return verdict{author: Author{Signal: Unknown}, until: e.times.last, contradiction: true}
}

// decide returns the verdict about the event. The only function that it calls back is the event's Content.
func (e *evidence) decide() verdict {
	if e.pending.event.Operation == v1alpha1.OperationDelete {
		return e.decideDeletion()
	}
	return e.decideWrite()
}

// decideWrite returns the verdict about a create or update.
func (e *evidence) decideWrite() verdict {
	admitted := e.admitted()
	switch {
	case len(e.exact) > 0:
		v := e.combine(firstWriter(e.writers(), admitted, e.pending.event.Object), admitted)
		v.unreviewed = len(e.attempts) == 0
		return v
	case e.writer != nil:
		return e.combine(e.writer, admitted)
	case len(admitted) > 0:
		return e.decideAdmitted(admitted)
	}
	if v, ok := e.decideNamed(e.named); ok {
		return v
	}
	if manager := managerOf(e.pending.event.Object, e.pending.arrived); manager != "" {
		return verdict{author: Author{Signal: ManagedFields, Manager: manager}, until: e.times.unknown, unreported: true}
	}
	return verdict{author: Author{Signal: Unknown}, until: e.times.unknown, unreported: true}
}

// combine compares the audited author, nil if there are several, with the admission facts about the same change. A
// request that found the state and changed nothing is audited like the one that created it. So all facts of the audit
// have to arrive first, unless all those of admission have, and name no other user.
func (e *evidence) combine(audited *storedFact, admitted []*storedFact) verdict {
	if audited == nil {
		return e.contradicted()
	}
	agreed := filter(admitted, func(k *storedFact) bool { return k.Actor.Username == audited.Actor.Username })
	switch {
	case len(agreed) == 0 && len(admitted) > 0:
		return e.contradicted()
	case len(agreed) == 0 || len(agreed) < len(admitted):
		return attributedTo(audited, e.times.audit)
	}
	return attributedTo(audited, e.times.soonest())
}

// oneUser returns the first of the facts if all are of one user.
func oneUser(facts []*storedFact) *storedFact {
	if len(facts) == 0 || slices.ContainsFunc(facts, func(k *storedFact) bool { return !sameUser(k, facts[0]) }) {
		return nil
	}
	return facts[0]
}

// sameUser reports whether two facts of one signal are from the same user. An impersonator's requests are distinct from
// the impersonated user's own.
func sameUser(a, b *storedFact) bool {
	return a.Actor.Username == b.Actor.Username && a.Actor.ImpersonatedBy == b.Actor.ImpersonatedBy
}

// filter returns the facts that satisfy a condition.
func filter(facts []*storedFact, holds func(*storedFact) bool) []*storedFact {
	var result []*storedFact
	for _, k := range facts {
		if holds(k) {
			result = append(result, k)
		}
	}
	return result
}

func isDeletion(k *storedFact) bool { return k.Operation == v1alpha1.OperationDelete }
