// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// arrivalsLimit bounds the changes for which the lag of facts is measured.
	arrivalsLimit = 10_000
	// clockSkew is the assumed maximum difference between the clocks of API servers and ours.
	clockSkew = time.Second
)

// revision is one state of one object.
type revision struct {
	uid     types.UID
	version string
}

// anyVersion replaces the resourceVersion that a change started from if it is unknown.
const anyVersion = "?"

// arrivals records when the last changes arrived. It measures how late the facts about them are, whether or not the
// changes waited for them.
type arrivals struct {
	// after has the times by the state that a change created, before by the state that it started from.
	after, before map[revision]time.Time
	// order is a ring of the keys, with the oldest at next.
	order []arrival
	next  int
}

type arrival struct{ after, before revision }

func newArrivals() *arrivals {
	return &arrivals{after: map[revision]time.Time{}, before: map[revision]time.Time{}}
}

// add records a change. A revision without uid means that no fact is expected.
func (a *arrivals) add(now time.Time, one arrival) {
	if one == (arrival{}) {
		return
	}
	if len(a.order) < arrivalsLimit {
		a.order = append(a.order, one)
	} else {
		delete(a.after, a.order[a.next].after)
		delete(a.before, a.order[a.next].before)
		a.order[a.next] = one
		a.next = (a.next + 1) % arrivalsLimit
	}
	if one.after.uid != "" {
		a.after[one.after] = now
	}
	if one.before.uid != "" {
		a.before[one.before] = now
	}
}

// lag returns how much later than its change a fact arrives. Only the first fact about a change is measured. A request
// that began after the change, allowing for clock skew, found the state and did not create it.
func (a *arrivals) lag(fact *Fact, now time.Time) (time.Duration, bool) {
	times, key, skew := a.after, revision{fact.UID, fact.After}, clockSkew
	if fact.Signal == Admission {
		times, key = a.before, revision{fact.UID, fact.Before}
		if _, ok := times[key]; !ok {
			// The next attempt may follow soon. It is received after the change has come.
			key, skew = revision{fact.UID, anyVersion}, 0
		}
	}
	came, ok := times[key]
	if !ok || fact.Begun.Sub(came) > skew {
		return 0, false
	}
	delete(times, key)
	return now.Sub(came), true
}
