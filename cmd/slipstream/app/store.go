// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newStoreCommand returns the commands for the server's stores.
func newStoreCommand(commands ...*cobra.Command) *cobra.Command {
	store := &cobra.Command{
		Use:   "store",
		Short: "Maintain the stored data of the server",
	}
	store.AddCommand(commands...)
	return store
}

// addCommands adds subcommands. Each shows only its own flags: without texts of its own, a command inherits the usage
// and help texts of its parent, which list the server's flags and no commands. The parent's long text names the
// subcommands.
func addCommands(root *cobra.Command, commands ...*cobra.Command) {
	plain := &cobra.Command{}
	root.Long += "\n\nOther commands, each with its own --help:"
	for _, command := range commands {
		root.Long += fmt.Sprintf("\n  %-10s %s", command.Name(), command.Short)
		command.SetUsageFunc(plain.UsageFunc())
		command.SetHelpFunc(plain.HelpFunc())
	}
	root.AddCommand(commands...)
}
