// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrMoved is returned if the remote's branch is not at its last known tip: another client pushed, or an own push
// succeeded although its response was lost. The caller should refresh, stage and push again.
var ErrMoved = errors.New("the remote branch has moved")

// ErrRefused is the cause of an Error of Kind Rejected if the remote has reported that it did not update the branch, and the branch is
// where it was. The push is not accepted later, unless a proxy has sent it to the remote twice.
var ErrRefused = errors.New("the remote has refused the update")

// Kind classifies an Error by how to react.
type Kind string

const (
	// Unreachable means that the remote did not respond, or cannot serve the request now. Retry later.
	Unreachable Kind = "Unreachable"
	// Unauthorized means that one side does not accept the identity of the other. Wait for other credentials.
	Unauthorized Kind = "Unauthorized"
	// NotFound means that the repository does not exist, or that the credentials do not give access to it.
	NotFound Kind = "NotFound"
	// Rejected means that the remote refused the request, as hooks and protected branches do. Message has the reason.
	Rejected Kind = "Rejected"
	// Protocol means that the response does not follow Git's protocol.
	Protocol Kind = "Protocol"
	// TooLarge means that the response exceeds Limits, or what any server sends.
	TooLarge Kind = "TooLarge"
	// Invalid means that the URL, the branch or the credentials cannot be used. Nothing was sent.
	Invalid Kind = "Invalid"
)

// Error is a failure of the remote or of the connection to it. Its text has no credentials.
type Error struct {
	Kind Kind
	// Op is the operation, for example "push".
	Op string
	// Message is the message of the remote or the network. It may have several lines.
	Message string
	// cause is for errors.Is and errors.As.
	cause error
}

// Error returns the text for logs and conditions.
func (e *Error) Error() string {
	return "cannot " + e.Op + ": " + e.Message
}

// Unwrap returns the underlying error, or nil. Its text may be longer than Message and is not scrubbed.
func (e *Error) Unwrap() error { return e.cause }

// refusal is the kind and text that failure turns into an Error.
type refusal struct {
	kind Kind
	text string
	// cause is for errors.Is and errors.As; optional.
	cause error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.cause }

func refuse(kind Kind, format string, arguments ...any) error {
	return &refusal{kind: kind, text: fmt.Sprintf(format, arguments...)}
}

// failure returns the error for callers. After a cancellation it is the context's error, whatever failed because of it.
func (r *Remote) failure(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), errTimeout) {
		text := fmt.Sprintf("the remote has not answered within %s", r.Limits.Time) + r.through(nil)
		return &Error{Kind: Unreachable, Op: op, Message: text, cause: errTimeout}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, ctx.Err())
	}
	if errors.Is(err, ErrMoved) {
		return fmt.Errorf("%s: %w", op, err)
	}
	kind, text := kindOf(err), r.scrub(err.Error())
	if kind == Unreachable {
		text += r.through(err)
	}
	return &Error{Kind: kind, Op: op, Message: text, cause: err}
}

// IsOutage reports whether the remote could not be reached, or said that it cannot serve requests now. It does not, if the remote has not
// responded in time, or limits requests.
func (e *Error) IsOutage() bool {
	return e.Kind == Unreachable && !errors.Is(e, errTimeout) && !errors.Is(e, errLimited)
}

// errLimited means that the remote limits requests.
var errLimited = errors.New("the server limits requests")

// kindOf returns the kind of an error. Every response of a remote is classified where it is read, so an error without a
// kind is a failure of the connection.
func kindOf(err error) Kind {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.kind
	}
	var login *Error
	if errors.As(err, &login) {
		return login.Kind
	}
	if errors.Is(err, errTooLarge) {
		return TooLarge
	}
	if errors.Is(err, errIncomplete) {
		return Protocol
	}
	return Unreachable
}

// kindOfText classifies the message with which a server refuses a repository. Git has no codes for that.
func kindOfText(text string, otherwise Kind) Kind {
	text = strings.ToLower(text)
	for _, known := range []struct {
		kind  Kind
		words []string
	}{
		{NotFound, []string{
			"not found", "does not exist", "no such repository", "could not be found", "not a git repository",
			"does not appear to be a git repository", "not exported", "cannot find repository", "push to create is not enabled",
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
