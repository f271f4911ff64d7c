// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newStoreCommand returns the commands about what the server has stored.
func newStoreCommand(commands ...*cobra.Command) *cobra.Command {
	store := &cobra.Command{
		Use:   "store",
		Short: "Look after what the server has stored",
	}
	store.AddCommand(commands...)
	return store
}

// addCommands adds commands beside serving. Each shows its own flags only: usage and help texts of a command are those
// of its parent unless it has some, and the server's list the server's flags and no commands; those are named in its
// long text.
func addCommands(root *cobra.Command, commands ...*cobra.Command) {
	plain := &cobra.Command{}
	root.Long += "\n\nOther commands, of which --help tells more:"
	for _, command := range commands {
		root.Long += fmt.Sprintf("\n  %-10s %s", command.Name(), command.Short)
		command.SetUsageFunc(plain.UsageFunc())
		command.SetHelpFunc(plain.HelpFunc())
	}
	root.AddCommand(commands...)
}
