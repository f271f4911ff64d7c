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
	// exitUsage says that flags or arguments are wrong. Nothing was done.
	exitUsage = 2
	// exitUnfinished says that a restore is decided, and is finished by the next start or the next restore.
	exitUnfinished = 3
	// exitRestart says that the server ended in order to be started again, on restored data. It is EX_TEMPFAIL of
	// sysexits.h, so that a supervisor which only restarts after failures does.
	exitRestart = 75
)

// errRestart ends a server that is to be started again.
var errRestart = errors.New("ended to be started again on the restored data")

// usageError is about flags or arguments.
type usageError struct{ error }

// Unwrap is what is wrong.
func (e usageError) Unwrap() error { return e.error }

// ExitCode is what the program ends with after an error of its command.
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

// withUsageErrors makes a command tell errors in its flags and arguments from others.
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
