// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Outcome is what happens next to the changes in a call.
type Outcome string

// Outcomes.
const (
	// Delivered: the consumer has accepted them.
	Delivered Outcome = "Delivered"
	// Retry: the same call is sent again later.
	Retry Outcome = "Retry"
	// Rejected: they are not sent again until they change, because the consumer would respond the same.
	Rejected Outcome = "Rejected"
	// Waiting: they were not sent yet, because the consumer still processes the previous batch. Nothing has failed.
	Waiting Outcome = "Waiting"
)

// Result is the outcome of a call and its reason.
type Result struct {
	Outcome Outcome
	// Message is shown to users. It quotes the consumer's response, which can be long, on many lines, and confidential.
	Message string
	// RetryAfter is the delay that the consumer requested, if any.
	RetryAfter time.Duration
}

// resultOf returns the result of a response whose status determines it.
func resultOf(status int, header http.Header, body []byte) Result {
	message := statusText(status)
	if location := header.Get("Location"); status/100 == 3 && location != "" {
		return Result{
			Outcome: Rejected, Message: message + ": redirects are not followed; put the address to which it points into url: " + location,
		}
	}
	if quoted := strings.TrimSpace(string(body)); quoted != "" {
		message += ": " + quoted
	}
	return Result{Outcome: outcomeOf(status), Message: message}
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
