// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dev starts, changes and stops development clusters, and is the Git server, the receiver and the load balancer
// that run in them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// newCommand returns the root command with its subcommands.
func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "dev",
		Short:         "Development clusters on loopback",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	command.AddCommand(
		newUpCommand(),
		newDownCommand(),
		newUserCommand(),
		newStopServerCommand(),
		newStartServerCommand(),
		newControlPlaneCommand(),
		newToolCommand(),
		newGitServerCommand(),
		newReceiverCommand(),
		newInboxCommand(),
		newBalancerCommand(),
		newGuardCommand(),
		newContainerCommand(),
	)
	return command
}
