// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrMoved says that the remote's branch is not where it was last seen: somebody else pushed, or a push of ours landed
// although its answer was lost. Refresh, stage again, push again.
var ErrMoved = errors.New("the remote branch has moved")

// Kind tells what to do about an Error.
type Kind string

const (
	// Unreachable says that the remote did not answer, or cannot now. Try again later.
	Unreachable Kind = "Unreachable"
	// Unauthorized says that one side does not accept who the other says it is. Wait for other credentials.
	Unauthorized Kind = "Unauthorized"
	// NotFound says that there is no such repository, or that these credentials may not know of it.
	NotFound Kind = "NotFound"
	// Rejected says that the remote understood and refused, as hooks and protected branches do. Message says why.
	Rejected Kind = "Rejected"
	// Protocol says that the remote's answer is not what Git would say.
	Protocol Kind = "Protocol"
	// TooLarge says that the remote's answer is more than Limits allow, or than any server says.
	TooLarge Kind = "TooLarge"
	// Invalid says that the URL, the branch or the credentials cannot be used as they are; nothing was sent.
	Invalid Kind = "Invalid"
)

// Error is a failure at or on the way to the remote. Its text holds no credentials.
type Error struct {
	Kind Kind
	// Doing is what was tried, for example "push".
	Doing string
	// Message is what the remote or the network said, on one or several lines.
	Message string
	// cause is kept for errors.Is and errors.As.
	cause error
}

// Error returns one text for logs and conditions.
func (e *Error) Error() string {
	return "cannot " + e.Doing + ": " + e.Message
}

// Unwrap returns the underlying error, or nil. Its text may be longer than Message and is not scrubbed.
func (e *Error) Unwrap() error { return e.cause }

// refusal is an Error in the making: a kind and a text that come from the remote's own words.
type refusal struct {
	kind Kind
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(kind Kind, format string, arguments ...any) error {
	return &refusal{kind: kind, text: fmt.Sprintf(format, arguments...)}
}

// failure makes the error that callers see. A cancelled context is told as such, whatever broke because of it.
func (r *Remote) failure(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errTooSlow) {
		return &Error{Kind: Unreachable, Doing: doing, Message: fmt.Sprintf("the remote has not answered within %s", r.Limits.Time), cause: errTooSlow}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	if errors.Is(err, ErrMoved) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return &Error{Kind: kindOf(err), Doing: doing, Message: r.scrub(err.Error()), cause: err}
}

// kindOf finds the kind that an error was given where it arose. What was given none broke on the way: connections fail
// in more ways than can be listed, while every answer of a remote that is read is judged where it is read.
func kindOf(err error) Kind {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.kind
	}
	if errors.Is(err, errTooLarge) {
		return TooLarge
	}
	if errors.Is(err, errIncomplete) {
		return Protocol
	}
	return Unreachable
}

// kindOfText judges the words in which servers refuse a repository; Git has no codes for it.
func kindOfText(text string, otherwise Kind) Kind {
	text = strings.ToLower(text)
	for _, known := range []struct {
		kind  Kind
		words []string
	}{
		{NotFound, []string{
			"not found", "does not exist", "no such repository", "could not be found", "not a git repository",
			"does not appear to be a git repository", "not exported",
		}},
		{Unauthorized, []string{
			"permission denied", "access denied", "unauthorized", "not authorized", "authentication failed", "read-only",
		}},
	} {
		for _, words := range known.words {
			if strings.Contains(text, words) {
				return known.kind
			}
		}
	}
	return otherwise
}
