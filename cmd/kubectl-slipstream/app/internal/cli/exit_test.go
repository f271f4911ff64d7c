// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// TestExitCode keeps the code of an error that is wrapped, and its sentence.
func TestExitCode(t *testing.T) {
	cause := errors.New("no quota")
	for want, err := range map[int]error{3: cli.Failed("the sync failed: %w", cause), 4: cli.Conflict("the sync failed: %w", cause)} {
		if err.Error() != "the sync failed: no quota" || !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
		if got := cli.ExitCode(fmt.Errorf("such as: %w", err)); got != want || !cli.IsFailure(err) {
			t.Errorf("exit code %d, want %d", got, want)
		}
	}
}
