// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environments has the commands for catalogs and environments, and those that work alike for destinations and pipelines.
package environments

import (
	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommands returns the commands, without diff.
func NewCommands(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) []*cobra.Command {
	return []*cobra.Command{
		newStatus(streams, config), newExplainDrift(streams, config), newMissing(streams, config), newSecretDiff(streams, config),
		newSync(streams, config), newRetry(streams, config),
		newDismiss(streams, config), newUndismiss(streams, config), newResolve(streams, config), newRediscover(streams, config),
		newRollback(streams, config), newUnpin(streams, config),
		newPause(streams, config), newResume(streams, config), newSuspend(streams, config), newUnsuspend(streams, config),
	}
}
