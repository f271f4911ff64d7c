// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
)

func policy(base, most time.Duration) v1alpha1.PipelineRetry {
	return v1alpha1.PipelineRetry{Backoff: &metav1.Duration{Duration: base}, MaxBackoff: &metav1.Duration{Duration: most}}
}

func TestNextAttempt(t *testing.T) {
	least, most := func() float64 { return 0 }, func() float64 { return 1 }
	for name, tt := range map[string]struct {
		failures   int
		after      time.Duration
		least, end time.Duration
	}{
		"the first":                   {1, 0, time.Second, 2 * time.Second},
		"the second":                  {2, 0, 2 * time.Second, 4 * time.Second},
		"the sixth":                   {6, 0, 30 * time.Second, time.Minute},
		"one of many":                 {1 << 30, 0, 30 * time.Second, time.Minute},
		"no failure":                  {0, 0, time.Second, time.Second},
		"asked to wait":               {1, 10 * time.Second, 10 * time.Second, 10 * time.Second},
		"asked to wait for less":      {3, time.Second, 4 * time.Second, 8 * time.Second},
		"asked to wait beyond ours":   {1, 20 * time.Minute, 20 * time.Minute, 20 * time.Minute},
		"asked to wait beyond reason": {1, 1000 * time.Hour, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			retry := policy(time.Second, time.Minute)
			for random, want := range map[*func() float64]time.Duration{&least: tt.least, &most: tt.end} {
				if got := delivery.NextAttempt(retry, tt.failures, tt.after, *random); got != want {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
}

// TestNextAttemptHolds checks random policies: a delay is never below the base nor the receiver's Retry-After, never above the maximum
// unless the receiver requests it, and on average never shorter than the one before.
func TestNextAttemptHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		base := time.Duration(random.Int64N(int64(time.Minute))) + 100*time.Millisecond
		most := base + time.Duration(random.Int64N(int64(time.Hour)))
		after := time.Duration(random.Int64N(int64(2 * time.Hour)))
		retry := policy(base, most)
		var before float64
		for failures := range 20 {
			var sum time.Duration
			const samples = 100
			for sample := range samples {
				got := delivery.NextAttempt(retry, failures+1, 0, random.Float64)
				if got < base || got > most {
					t.Fatalf("failure %d: delay %v is not between %v and %v", failures+1, got, base, most)
				}
				if asked := delivery.NextAttempt(retry, failures+1, after, random.Float64); asked < min(after, time.Hour) ||
					asked > max(most, time.Hour) {
					t.Fatalf("Retry-After = %v, delay = %v", after, asked)
				}
				// Pairs of random numbers that add up to 1 make the average exact.
				chance := float64(sample) / (samples - 1)
				sum += delivery.NextAttempt(retry, failures+1, 0, func() float64 { return chance })
			}
			average := float64(sum) / samples
			if average < before-samples {
				t.Fatalf("failure %d with delays of %v to %v: average delay = %v, of the previous failure %v", failures+1, base, most,
					time.Duration(average), time.Duration(before))
			}
			before = average
		}
	}
}
