// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// maxRetryAfter bounds how long a receiver can delay the next attempt.
const maxRetryAfter = time.Hour

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
	return max(delay, min(retryAfter, maxRetryAfter))
}

// retryAfter returns the delay in the Retry-After header, in seconds or as a date, at most maxRetryAfter. It is 0 if there is none that
// can be parsed.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter))
	}
	if strings.Trim(value, "0123456789") != "" {
		return 0
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || seconds > int64(maxRetryAfter/time.Second) {
		return maxRetryAfter
	}
	return time.Duration(seconds) * time.Second
}
