// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// evidence is all that is known about one event at one time. The rules (the files match_*.go) are functions of it.
type evidence struct {
	*waiting

	// exact are the audit facts that name the state that the event tells of.
	exact []*kept
	// writer is the fact of the request that has written what the event's object holds but its status, of a kind that this
	// server serves; nil if that is not certain. It counts where no fact names the state.
	writer *kept
	// attempts are admission facts about writes of the object: those from the predecessor if it is known, else all.
	attempts []*kept
	// named are audit facts about the object's name that tell no more, and collections that it may have been in.
	named []*kept
	// deletions are those of the object's uid.
	deletions []*kept
	// namespaceDeletions are those of the namespace that the object was in.
	namespaceDeletions []*kept

	// reviewsMissed says that the audit has lately named a change like this one of which no review has come.
	reviewsMissed bool

	times waitingTimes
}

// waitingTimes are until when to expect more facts about an event. None is before the event's arrival.
type waitingTimes struct {
	// audit and admission are when a source, as far as has been measured, has told everything.
	audit, admission time.Time
	// last is when waiting ends.
	last time.Time
}

// soonest is when one of the sources has told everything.
func (t waitingTimes) soonest() time.Time {
	if t.admission.Before(t.audit) {
		return t.admission
	}
	return t.audit
}

// verdict is what evidence says.
type verdict struct {
	author Author
	// until is when the verdict counts, unless other facts come before.
	until time.Time
	// contradiction says that facts disagree.
	contradiction bool
	// fact is what told, if it was a fact; claims says that it explains no other event from now on.
	fact   *kept
	claims bool
	// unreviewed says that the audit names a change of which no review has come.
	unreviewed bool
}

// by is a verdict for the user of a fact.
func by(k *kept, until time.Time) verdict {
	return verdict{author: Author{Actor: k.Actor, Signal: k.Signal}, until: until, fact: k}
}

// contradicted is the verdict if facts disagree, and no more of them come.
func (e *evidence) contradicted() verdict {
	return verdict{author: Author{Signal: Unknown}, until: e.times.last, contradiction: true}
}

// decide finds the author of the event. It calls nothing but the event's Content.
func (e *evidence) decide() verdict {
	if e.event.Operation == v1alpha1.OperationDelete {
		return e.decideDeletion()
	}
	return e.decideWrite()
}

// decideWrite finds out who created or updated an object.
func (e *evidence) decideWrite() verdict {
	admitted := e.admitted()
	switch {
	case len(e.exact) > 0:
		v := e.weigh(maker(e.makers(), admitted, e.event.Object), admitted)
		v.unreviewed = len(e.attempts) == 0
		return v
	case e.writer != nil:
		return e.weigh(e.writer, admitted)
	case len(admitted) > 0:
		return e.decideAdmitted(admitted)
	}
	if v, ok := e.decideNamed(e.named); ok {
		return v
	}
	if manager := managerOf(e.event.Object, e.arrived); manager != "" {
		return verdict{author: Author{Signal: ManagedFields, Manager: manager}, until: e.times.last}
	}
	return verdict{author: Author{Signal: Unknown}, until: e.times.last}
}

// weigh holds the audit's answer, nil if it has several, against admission facts about the same change. A request that
// found the state and changed nothing reports it like the one that made it, so that the audit has to be done telling,
// unless admission is and tells of nobody else.
func (e *evidence) weigh(audited *kept, admitted []*kept) verdict {
	if audited == nil {
		return e.contradicted()
	}
	agreed := where(admitted, func(k *kept) bool { return k.Actor.Username == audited.Actor.Username })
	switch {
	case len(agreed) == 0 && len(admitted) > 0:
		return e.contradicted()
	case len(agreed) == 0 || len(agreed) < len(admitted):
		return by(audited, e.times.audit)
	}
	return by(audited, e.times.soonest())
}

// oneUser returns the first of the facts if all are of one user.
func oneUser(facts []*kept) *kept {
	if len(facts) == 0 || slices.ContainsFunc(facts, func(k *kept) bool { return !sameUser(k, facts[0]) }) {
		return nil
	}
	return facts[0]
}

// sameUser says whether two facts of one signal are of the same user. Somebody who acts in another's name is not that
// other, whose own requests must not be told as theirs.
func sameUser(a, b *kept) bool {
	return a.Actor.Username == b.Actor.Username && a.Actor.ImpersonatedBy == b.Actor.ImpersonatedBy
}

// where returns the facts for which a condition holds.
func where(facts []*kept, holds func(*kept) bool) []*kept {
	var result []*kept
	for _, k := range facts {
		if holds(k) {
			result = append(result, k)
		}
	}
	return result
}
