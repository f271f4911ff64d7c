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

// maxRetryAfter is how long a receiver may ask not to be asked again.
const maxRetryAfter = time.Hour

// NextAttempt is how long to wait after so many failures in a row, at least one: from the backoff of the policy, which has its
// defaults, doubling with each failure up to its maxBackoff, and never less than the receiver asks for. random is between 0
// and 1; it spreads what failed together over the upper half of the time.
func NextAttempt(retry v1alpha1.PipelineRetry, failures int, after time.Duration, random func() float64) time.Duration {
	base, most := retry.Backoff.Duration, retry.MaxBackoff.Duration
	high := base
	for range failures {
		if high >= most {
			break
		}
		high *= 2
	}
	high = min(high, most)
	low := min(max(high/2, base), high)
	delay := low + time.Duration(random()*float64(high-low))
	return max(delay, min(after, maxRetryAfter))
}

// retryAfter is how long a receiver asks to be left alone: a number of seconds or a date, at most an hour. What cannot be read asks
// for nothing.
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
