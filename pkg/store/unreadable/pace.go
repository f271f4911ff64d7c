// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"time"
)

const (
	// batchSize is how many records a slow check reads before it pauses: tens of milliseconds' work.
	batchSize = 1000
	// pauseShare is the duration of a pause as a multiple of that of the batch before, so that a slow check takes a tenth of a processor and
	// does not slow down a start. maxPause limits it where records are read slowly.
	pauseShare, maxPause = 9, 2 * time.Second
	// startDelay is how long watch caches are not initialized at a start without a cause.
	startDelay = 10 * time.Second
)

// pace slows a check down until there is a reason to hurry: the check is requested, another one is requested meanwhile, it has found a record,
// or watch caches are still not initialized, perhaps because of one.
type pace struct {
	monitor *Monitor
	found   findings
	hurry   bool
	// start is the start of the check.
	start time.Time
	// records counts the records since began, the end of the last pause.
	records int
	began   time.Time
	// paused is the duration of all pauses.
	paused time.Duration
}

// afterRecord pauses after each batch of records.
func (p *pace) afterRecord(ctx context.Context) error {
	if p.records++; p.records < batchSize {
		return nil
	}
	m := p.monitor
	now := m.clock.Now()
	if p.hurry = p.hurry || p.mustHurry(now); !p.hurry {
		m.rested(ctx)
		if _, err := m.wait(ctx, min(pauseShare*now.Sub(p.began), maxPause), nil); err != nil {
			return err
		}
	}
	p.records, p.began = 0, m.clock.Now()
	p.paused += p.began.Sub(now)
	return nil
}

func (p *pace) mustHurry(now time.Time) bool {
	unfilled := p.monitor.unfilled.Swap(false)
	return len(p.found) > 0 || len(p.monitor.wake) > 0 || unfilled && now.Sub(p.start) > startDelay
}
