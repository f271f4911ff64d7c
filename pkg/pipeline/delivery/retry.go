// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// NextAttempt returns the delay after a number of consecutive failures, at least one. It starts with the policy's backoff and doubles with
// each failure up to maxBackoff; it is never less than retryAfter, the delay that the receiver requested. The policy must have its
// defaults. random returns numbers between 0 and 1, which spread sinks that failed together over the upper half of the delay.
func NextAttempt(retry v1alpha1.PipelineRetry, failures int, retryAfter time.Duration, random func() float64) time.Duration {
	base, limit := retry.Backoff.Duration, retry.MaxBackoff.Duration
	high := base
	for range failures {
		if high >= limit {
			break
		}
		high *= 2
	}
	high = min(high, limit)
	low := min(max(high/2, base), high)
	delay := low + time.Duration(random()*float64(high-low))
	return max(delay, min(retryAfter, outbound.MaxRetryAfter))
}
