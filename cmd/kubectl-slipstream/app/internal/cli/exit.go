// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes of all commands of the plugin.
const (
	// exitDifferent is returned if there is a difference.
	exitDifferent = 1
	exitError     = 2
	// exitFailed is returned after a request that was executed and failed.
	exitFailed = 3
	// exitConflict is returned if the state of an object does not allow the request, such as a suspended pipeline, or if a sync ended with
	// conflicts or was superseded.
	exitConflict  = 4
	exitForbidden = 5
	// exitTimeout is returned after the time limit. The request continues.
	exitTimeout = 124
	// exitInterrupted is the shell's exit code for SIGINT. The request continues.
	exitInterrupted = 130
)

// coded is an error with an exit code.
type coded struct {
	error
	code int
}

// Unwrap returns the error without the code.
func (e *coded) Unwrap() error { return e.error }

// Failed returns an error for a request that was executed and failed, formatted as by fmt.Errorf.
func Failed(format string, args ...any) error {
	return &coded{fmt.Errorf(format, args...), exitFailed}
}

// Conflict returns an error, formatted as by fmt.Errorf, for a request that the state of an object does not allow, and for a sync that ended
// with conflicts of fields or that a newer one has replaced.
func Conflict(format string, args ...any) error {
	return &coded{fmt.Errorf(format, args...), exitConflict}
}

// ErrDifferent is returned by diff if there is a difference, which is printed.
var ErrDifferent = errors.New("there are differences")

// IsFailure reports whether an error is to be printed.
func IsFailure(err error) bool { return err != nil && !errors.Is(err, ErrDifferent) }

// ExitCode returns the exit code for an error of the command.
func ExitCode(err error) int {
	ended := (*coded)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return ended.code
	case errors.Is(err, ErrDifferent):
		return exitDifferent
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case apierrors.IsForbidden(err):
		return exitForbidden
	case apierrors.IsConflict(err):
		return exitConflict
	}
	return exitError
}
