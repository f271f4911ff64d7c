// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"

	"github.com/configbutler/slipstream/pkg/kube/buildversion"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

func newVersion(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	var clientOnly bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin and of the server",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := fmt.Fprintln(streams.Out, "Plugin:", buildversion.WithCommit()); err != nil || clientOnly {
				return err
			}
			return printServerVersion(command.Context(), streams, config)
		},
	}
	command.Flags().BoolVar(&clientOnly, "client", false, "Print only the version of the plugin, without a cluster.")
	return command
}

func printServerVersion(ctx context.Context, streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) error {
	found, err := config.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(found)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	server, err := serverVersion(ctx, client)
	if err != nil {
		return fmt.Errorf("read the version of the server: %w", err)
	}
	_, err = fmt.Fprintln(streams.Out, "Server:", printable.Line(server))
	return err
}
