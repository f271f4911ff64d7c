// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
)

// defaultWait is how long to wait after a limit without a time. GitHub asks for at least one minute after a secondary limit.
const defaultWait = time.Minute

// rateLimit reports whether a failure is a limit of requests, and how long to wait.
func (c *client) rateLimit(received reply, said string) (time.Duration, bool) {
	remaining := firstHeader(received.header, "X-Ratelimit-Remaining", "Ratelimit-Remaining")
	isLimited := received.status == http.StatusTooManyRequests
	if received.status == http.StatusForbidden && c.kind == GitHub {
		isLimited = remaining == "0" || received.header.Get("Retry-After") != "" ||
			strings.Contains(strings.ToLower(said), "rate limit")
	}
	if !isLimited {
		return 0, false
	}
	now := c.clock.Now()
	if received.header.Get("Retry-After") != "" {
		if wait := outbound.RetryAfter(received.header, now); wait > 0 {
			return wait, true
		}
	}
	reset := firstHeader(received.header, "X-Ratelimit-Reset", "Ratelimit-Reset")
	if at, err := strconv.ParseUint(reset, 10, 63); err == nil && (remaining == "0" || remaining == "") {
		if seconds := int64(at) - now.Unix(); seconds > 0 {
			return time.Duration(min(seconds, int64(outbound.MaxRetryAfter/time.Second))) * time.Second, true
		}
	}
	return defaultWait, true
}

func firstHeader(header http.Header, names ...string) string {
	for _, name := range names {
		if value := strings.TrimSpace(header.Get(name)); value != "" {
			return value
		}
	}
	return ""
}
