// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// After another writer was faster the wait is movedRetryMin, growing up to
	// movedRetryMax, and up to as much again by chance.
	movedRetryMin = 10 * time.Millisecond
	movedRetryMax = 500 * time.Millisecond
)

// race is how a worker competes with others who push to its branch. Making commits takes longer the more changes they
// hold, and whoever pushes meanwhile makes them void. So each push that comes too late halves what the next one carries,
// until that is quick enough, and each that lands lets the next one carry half as much again.
type race struct {
	backoff wait.Backoff
	// most is how many changes one push carries; zero: as many as the limits say.
	most int
	// carried is how many the push carries that was tried last; zero after its end.
	carried int
}

func newRace() race {
	return race{backoff: newRaceBackoff()}
}

func newRaceBackoff() wait.Backoff {
	return wait.Backoff{Duration: movedRetryMin, Factor: 1.5, Jitter: 1, Steps: 30, Cap: movedRetryMax}
}

// bound returns how many changes the next push carries of those that the limits allow.
func (r *race) bound(allowed int) int {
	if r.most == 0 {
		return allowed
	}
	return min(allowed, r.most)
}

// lost takes note that another writer was faster, and returns how long to wait.
func (r *race) lost() time.Duration {
	if r.carried > 0 {
		r.most, r.carried = max(1, r.carried/2), 0
	}
	return r.backoff.Step()
}

// won takes note that a push has landed.
func (r *race) won() {
	r.backoff, r.carried = newRaceBackoff(), 0
	if r.most += (r.most + 1) / 2; r.most >= comparePartFiles {
		r.most = 0
	}
}
