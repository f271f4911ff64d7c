// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pipelines has the commands for pipelines.
package pipelines

import (
	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommands returns the commands.
func NewCommands(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) []*cobra.Command {
	return []*cobra.Command{newSyncPipeline(streams, config)}
}
