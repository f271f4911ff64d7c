// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// reportInterval is how often it is said how far a migration is.
const reportInterval = 2 * time.Second

// Reporter says now and then how far a migration is. A nil one says nothing.
type Reporter struct {
	clock clock.PassiveClock
	say   func(what string, done, total int64)

	mu   sync.Mutex
	said time.Time
}

// NewReporter calls say every 2 seconds.
func NewReporter(c clock.PassiveClock, say func(what string, done, total int64)) *Reporter {
	return &Reporter{clock: c, say: say, said: c.Now()}
}

// step notes how far something is. A total of 0 is not known.
func (r *Reporter) step(what string, done, total int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now(); now.Sub(r.said) >= reportInterval {
		r.said = now
		r.say(what, done, total)
	}
}
