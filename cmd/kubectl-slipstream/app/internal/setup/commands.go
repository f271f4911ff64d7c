// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setup has the commands for the first steps: they create objects, configure attribution and check the installation.
package setup

import (
	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommands returns the commands.
func NewCommands(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) []*cobra.Command {
	return []*cobra.Command{
		newMirror(streams, config), newCatalog(streams, config), newEnvironment(streams, config), newPipeline(streams, config),
		newWebhookConfig(streams, config), newCheck(streams, config), newVersion(streams, config),
		newInstallHooks(streams), newBootstrap(streams, config),
	}
}
