// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/configbutler/slipstream/pkg/store/backup"
)

// Exit codes of the program.
const (
	exitFailed = 1
	// exitUsage is returned for invalid flags or arguments. Nothing was done.
	exitUsage = 2
	// exitUnfinished is returned if a restore is committed and the next start or restore finishes it.
	exitUnfinished = 3
	// exitRestart is returned if the server ended in order to be restarted, on restored data or with types that the cluster serves now. It is EX_TEMPFAIL of
	// sysexits.h, so that a supervisor that only restarts after failures does.
	exitRestart = 75
)

// errRestart ends a server that is to be restarted.
var errRestart = errors.New("the server ended to be restarted")

// usageError is an error in flags or arguments.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// ExitCode returns the exit code for an error of the command.
func ExitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, backup.ErrUnfinished):
		return exitUnfinished
	case errors.Is(err, errRestart):
		return exitRestart
	}
	return exitFailed
}

// withUsageErrors makes a command return errors in its flags and arguments as usageError.
func withUsageErrors(command *cobra.Command) *cobra.Command {
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	if check := command.Args; check != nil {
		command.Args = func(command *cobra.Command, args []string) error {
			if err := check(command, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	return command
}
