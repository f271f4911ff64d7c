// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/component-base/metrics/testutil"
)

func contradictionsSoFar(t *testing.T) float64 {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(contradictions.WithLabelValues(""))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestLagOfAFormerLeader checks that the metric of the lag is zero once the joiner has stopped.
func TestLagOfAFormerLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJoiner(Config{Controller: "former"})
		j.expected.sources.audit.lag = 3 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		go j.Run(ctx)
		expect := func(want float64) {
			t.Helper()
			got, err := testutil.GetGaugeMetricValue(lagSeconds.WithLabelValues("former", string(Audit)))
			if err != nil || got != want {
				t.Errorf("lag = %v s, want %v; %v", got, want, err)
			}
		}
		<-time.After(sweepInterval + time.Second)
		expect(3)
		cancel()
		synctest.Wait()
		expect(0)
	})
}
