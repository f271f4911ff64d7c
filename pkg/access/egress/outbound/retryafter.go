// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter bounds how long a server can delay the next attempt.
const MaxRetryAfter = time.Hour

// RetryAfter returns the delay in the Retry-After header, in seconds or as a date, at most MaxRetryAfter. It is 0 if there is none that
// can be parsed.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), MaxRetryAfter))
	}
	if strings.Trim(value, "0123456789") != "" {
		return 0
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
		return MaxRetryAfter
	}
	return time.Duration(seconds) * time.Second
}
