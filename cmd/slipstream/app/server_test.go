// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
)

// The verbosity of the command line is the one that the log is set up with. Sets of flags are joined in no order, so that a
// flag that is in two of them would count in some runs only: one run does not show it.
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
