// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package samples summarizes measured durations.
package samples

import (
	"math"
	"slices"
	"time"
)

// Quantile returns the smallest sample that a share of the samples do not exceed.
func Quantile(samples []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
}

// Milliseconds returns a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Ratio returns how many times as long as another a duration is.
func Ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
