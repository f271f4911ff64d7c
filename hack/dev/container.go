// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/configbutler/slipstream/test/container"
)

// newContainerCommand returns the command that runs the program of a container, see container.Command.
func newContainerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    container.CommandName + " SPEC",
		Short:  "Run the program of a container",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			return container.Enter(arguments[0])
		},
	}
}
