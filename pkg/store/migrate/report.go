// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// reportInterval is the interval between progress reports.
const reportInterval = 2 * time.Second

// Reporter reports the progress of a migration periodically. A nil Reporter does nothing.
type Reporter struct {
	clock  clock.PassiveClock
	report func(what string, done, total int64)

	mu   sync.Mutex
	last time.Time
}

// NewReporter returns a Reporter that calls report at most every 2 seconds.
func NewReporter(c clock.PassiveClock, report func(what string, done, total int64)) *Reporter {
	return &Reporter{clock: c, report: report, last: c.Now()}
}

// step records the progress. A total of 0 means unknown.
func (r *Reporter) step(what string, done, total int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now(); now.Sub(r.last) >= reportInterval {
		r.last = now
		r.report(what, done, total)
	}
}
