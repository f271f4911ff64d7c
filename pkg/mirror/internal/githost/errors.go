// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"fmt"
	"time"
)

// ErrorKind is what the caller does about an Error.
type ErrorKind string

const (
	// Unreachable is a host that does not respond, or that responds with a failure of its own. Retry later.
	Unreachable ErrorKind = "Unreachable"
	// Unauthorized is a token that is not valid or lacks a permission. The user must replace it.
	Unauthorized ErrorKind = "Unauthorized"
	// NotFound is a repository or a pull request that does not exist or that the token may not see.
	NotFound ErrorKind = "NotFound"
	// RateLimited is a limit of requests. Retry after RetryAfter.
	RateLimited ErrorKind = "RateLimited"
	// Refused is a request that the host does not allow in its present state, such as in an archived repository.
	Refused ErrorKind = "Refused"
	// Invalid is a request with content that the host does not accept, such as a reviewer who does not exist.
	Invalid ErrorKind = "Invalid"
	// Protocol is a response that is not one of the API.
	Protocol ErrorKind = "Protocol"
)

// Error is a failed operation.
type Error struct {
	Kind ErrorKind
	// Op is the operation, such as: create the pull request.
	Op string
	// Message is printable, bounded, and free of credentials. It says what to do about the error where that is known.
	Message string
	// RetryAfter is how long to wait before the next attempt, 0 if the host does not say.
	RetryAfter time.Duration

	// cause is the error of a context that ended.
	cause error
	// tooLarge reports whether the response is larger than what is read.
	tooLarge bool
}

func (e *Error) Error() string {
	if e.Op == "" {
		return e.Message
	}
	return e.Op + ": " + e.Message
}

// Unwrap returns the error of the context if it ended.
func (e *Error) Unwrap() error { return e.cause }

func invalid(format string, arguments ...any) *Error {
	return &Error{Kind: Invalid, Message: fmt.Sprintf(format, arguments...)}
}
