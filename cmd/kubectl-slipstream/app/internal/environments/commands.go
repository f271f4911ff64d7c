// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environments has the commands for catalogs and environments.
package environments

import (
	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommands returns the commands, without diff.
func NewCommands(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) []*cobra.Command {
	return []*cobra.Command{
		newExplainDrift(streams, config), newMissing(streams, config), newSecretDiff(streams, config), newStatus(streams, config),
	}
}
