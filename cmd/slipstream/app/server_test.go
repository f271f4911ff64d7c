// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
)

// TestVerbosity checks that the verbosity of the command line configures the log. Flag sets are joined in random order, so a
// flag that is in two of them would work in some runs only: one run does not show it.
func TestVerbosity(t *testing.T) {
	for range 20 {
		opts, command := options.New(apiserver.NewCodecs(apiserver.NewScheme())), &cobra.Command{Use: "slipstream"}
		addFlags(command, opts)
		if err := command.ParseFlags([]string{"-v=3"}); err != nil {
			t.Fatal(err)
		}
		if got := opts.Logging.Verbosity; got != 3 {
			t.Fatalf("with -v=3 the verbosity is %d", got)
		}
	}
}
