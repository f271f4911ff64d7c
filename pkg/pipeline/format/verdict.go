// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Outcome is what becomes of what a call told of.
type Outcome string

// Outcomes.
const (
	// Delivered is done: the consumer has taken it.
	Delivered Outcome = "Delivered"
	// Retry is to be sent again, later and as it is.
	Retry Outcome = "Retry"
	// Rejected is not sent again as it is: the consumer would answer the same.
	Rejected Outcome = "Rejected"
	// Waiting is not sent yet, and nothing has failed: what was sent before is still being worked on.
	Waiting Outcome = "Waiting"
)

// Verdict is an outcome and why.
type Verdict struct {
	Outcome Outcome
	// Text is for people. It quotes the consumer, whose words may be long, on many lines, and not meant for everybody.
	Text string
	// After is how long the consumer asks to be left alone, when it says so.
	After time.Duration
}

// byStatus is the verdict when the status says it all.
func byStatus(status int, header http.Header, body []byte) Verdict {
	text := statusText(status)
	if location := header.Get("Location"); status/100 == 3 && location != "" {
		return Verdict{Outcome: Rejected, Text: text + ": redirects are not followed; put the address to which it points into url: " + location}
	}
	if answer := strings.TrimSpace(string(body)); answer != "" {
		text += ": " + answer
	}
	return Verdict{Outcome: outcomeOf(status), Text: text}
}

func outcomeOf(status int) Outcome {
	switch {
	case status/100 == 2:
		return Delivered
	case status >= 500,
		status == http.StatusRequestTimeout,
		status == http.StatusTooEarly,
		status == http.StatusTooManyRequests:
		return Retry
	}
	return Rejected
}

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}
