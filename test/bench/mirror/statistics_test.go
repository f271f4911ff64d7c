// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"math"
	"slices"
	"time"
)

// quantile returns the smallest sample that a share of the samples do not exceed.
func quantile(samples []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
