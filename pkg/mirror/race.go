// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// After a push that lost against another writer, the delay is movedRetryMin, growing up to movedRetryMax, plus up to
	// the same again as jitter.
	movedRetryMin = 10 * time.Millisecond
	movedRetryMax = 500 * time.Millisecond
)

// race adapts the size of pushes to other writers of the branch. Commits of more changes take longer to build, and another
// push in the meantime invalidates them. So each push that was overtaken halves the size of the next, and each that is accepted
// lets the next be half as large again.
type race struct {
	backoff wait.Backoff
	// most bounds the changes of one push; zero means no bound beside the limits.
	most int
	// carried is the number of changes in the push in progress; zero after its end.
	carried int
}

func newRace() *race {
	return &race{backoff: newRaceBackoff()}
}

func newRaceBackoff() wait.Backoff {
	return wait.Backoff{Duration: movedRetryMin, Factor: 1.5, Jitter: 1, Steps: 30, Cap: movedRetryMax}
}

// bound returns how many changes the next push may carry.
func (r *race) bound(allowed int) int {
	if r.most == 0 {
		return allowed
	}
	return min(allowed, r.most)
}

// overtaken records that another writer was faster than the push in progress, which follows it.
func (r *race) overtaken() {
	if r.carried > 0 {
		r.most = max(1, r.carried/2)
	}
}

// lost records a push that lost against another writer, and returns the delay before the next.
func (r *race) lost() time.Duration {
	r.overtaken()
	r.carried = 0
	return r.backoff.Step()
}

// won records an accepted push.
func (r *race) won() {
	r.backoff, r.carried = newRaceBackoff(), 0
	if r.most += (r.most + 1) / 2; r.most >= comparePartFiles {
		r.most = 0
	}
}
