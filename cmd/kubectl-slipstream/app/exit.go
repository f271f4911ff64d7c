// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes of the plugin, the same for all its commands.
const (
	exitError = 2
	// exitFailed says that what was asked for was done, and did not go well.
	exitFailed = 3
	// exitConflict says that something stands in the way, such as that a pipeline is suspended.
	exitConflict  = 4
	exitForbidden = 5
	// exitTimeout says that the time limit came first. What was asked for goes on.
	exitTimeout = 124
	// exitInterrupted is what shells say of SIGINT. What was asked for goes on.
	exitInterrupted = 130
)

// errFailed is wrapped by errors about what was done and did not go well.
var errFailed = errors.New("failed")

// ExitCode is what the plugin ends with after an error of its command.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFailed):
		return exitFailed
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
