// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history has the commands that read the history of objects, and write objects back as they were.
package history

import (
	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommands returns the commands, without diff.
func NewCommands(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) []*cobra.Command {
	return []*cobra.Command{
		newBlame(streams, config), newLog(streams, config), newMCP(streams, config),
		newRestore(streams, config), newShow(streams, config), newUndo(streams, config),
	}
}
