// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notifications has the commands for NotificationSinks.
package notifications

import (
	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommands returns the commands.
func NewCommands(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) []*cobra.Command {
	notify := &cobra.Command{
		Use:   "notify",
		Short: "Send a test message to the receiver of a NotificationSink",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	notify.AddCommand(newTest(streams, config))
	return []*cobra.Command{notify}
}
