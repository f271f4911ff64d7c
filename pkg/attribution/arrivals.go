// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// arrivalsLimit bounds the changes for which the lag of facts can be measured.
	arrivalsLimit = 10_000
	// clockSkew is how far the clocks of API servers and ours may be apart.
	clockSkew = time.Second
)

// revision is one state of one object.
type revision struct {
	uid     types.UID
	version string
}

// anyVersion stands for the version that a change started from where that is not known.
const anyVersion = "?"

// arrivals remembers when the last changes came, and so tells how late the facts about them are, whether or not the
// changes have waited for them.
type arrivals struct {
	// at has the times by the state that a change has made, and by the one that it started from.
	made, tried map[revision]time.Time
	// order is a ring of the keys, the oldest at next.
	order []arrival
	next  int
}

type arrival struct{ made, tried revision }

func newArrivals() *arrivals {
	return &arrivals{made: map[revision]time.Time{}, tried: map[revision]time.Time{}}
}

// add takes note of a change; a revision without uid stands for one that no fact is awaited of.
func (a *arrivals) add(now time.Time, one arrival) {
	if len(a.order) < arrivalsLimit {
		a.order = append(a.order, one)
	} else {
		delete(a.made, a.order[a.next].made)
		delete(a.tried, a.order[a.next].tried)
		a.order[a.next] = one
		a.next = (a.next + 1) % arrivalsLimit
	}
	if one.made.uid != "" {
		a.made[one.made] = now
	}
	if one.tried.uid != "" {
		a.tried[one.tried] = now
	}
}

// lag returns how much later than its change a fact comes; only the first fact about a change says so. A request that
// was begun after the change, as far as clocks can tell, has found it and not made it.
func (a *arrivals) lag(fact *Fact, now time.Time) (time.Duration, bool) {
	times, key, skew := a.made, revision{fact.UID, fact.After}, clockSkew
	if fact.Signal == Admission {
		times, key = a.tried, revision{fact.UID, fact.Before}
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
