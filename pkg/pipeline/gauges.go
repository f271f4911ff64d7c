// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"time"
)

// measurePeriod is the maximum age of the gauges. It is shorter than usual scrape intervals.
const measurePeriod = 5 * time.Second

// measureUntil updates the gauges until ctx ends, and then removes them: the next leader has its own.
func (c *pipelines) measureUntil(ctx context.Context) {
	defer forgetGauges()
	ticker := c.shared.Clock.NewTicker(measurePeriod)
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

// measure sets the gauges of a pipeline, unless it has stopped: then its gauges were removed.
func (c *pipelines) measure(p *pipeline) {
	seen := c.observer.State(p.uid)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[p.name] != p {
		return
	}
	objectsGauge.WithLabelValues(p.name).Set(float64(seen.Objects))
	typesGauge.WithLabelValues(p.name).Set(float64(seen.WatchedTypes))
	p.measureSinks(c.shared.Clock.Now())
}

// measureSinks sets the gauges of the current sinks. Those of a removed sink are removed later.
func (p *pipeline) measureSinks(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sinks {
		counts := s.ledger.Counts()
		status, _ := s.state.current()
		age := time.Duration(0)
		if !counts.OldestDue.IsZero() && !p.isHeld.Load() {
			age = now.Sub(counts.OldestDue)
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
