// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"time"

	"github.com/configbutler/slipstream/pkg/environment/job"
)

// measurePeriod is how old the gauges are at most. It is shorter than what metrics are usually read in.
const measurePeriod = 5 * time.Second

// measure counts what came of a run.
func measure(outcome job.Outcome, took time.Duration) {
	for _, record := range outcome.Records {
		syncs.WithLabelValues(string(record.Spec.Type), string(record.Status.State)).Inc()
	}
	if outcome.Result.Plan != nil {
		syncSeconds.Observe(took.Seconds())
	}
}

// measureUntil keeps the gauges until ctx ends. Afterwards they are 0: whoever leads next tells.
func (c *environments) measureUntil(ctx context.Context) {
	defer setGauges(0, 0)
	ticker := c.config.Clock.NewTicker(measurePeriod)
	defer ticker.Stop()
	for {
		setGauges(c.line.numbers())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func setGauges(waiting, active int) {
	waitingGauge.Set(float64(waiting))
	activeGauge.Set(float64(active))
}
