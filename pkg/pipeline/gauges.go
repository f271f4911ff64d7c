// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"time"
)

// measurePeriod is how old the gauges are at most. It is shorter than what metrics are usually read in.
const measurePeriod = 5 * time.Second

// measureUntil keeps the gauges until ctx ends. Afterwards there are none: whoever leads next tells.
func (c *pipelines) measureUntil(ctx context.Context) {
	defer forgetGauges()
	ticker := c.config.Clock.NewTicker(measurePeriod)
	defer ticker.Stop()
	for {
		for _, p := range c.current() {
			c.measure(p)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// measure sets the gauges of a pipeline.
func (c *pipelines) measure(p *pipe) {
	seen := c.observer.State(p.uid)
	objectsGauge.WithLabelValues(p.name).Set(float64(seen.Objects))
	typesGauge.WithLabelValues(p.name).Set(float64(seen.WatchedTypes))
	for _, s := range p.current() {
		counts := s.ledger.Counts()
		status, _ := s.account.current()
		age := 0.0
		if !counts.OldestDue.IsZero() && !p.isHeld.Load() {
			age = c.config.Clock.Since(counts.OldestDue).Seconds()
		}
		s.numbers.set(counts, age, int(status.Failures))
	}
}

func forgetGauges() {
	objectsGauge.Reset()
	typesGauge.Reset()
	pendingGauge.Reset()
	oldestGauge.Reset()
	rejectedGauge.Reset()
	failuresGauge.Reset()
}
