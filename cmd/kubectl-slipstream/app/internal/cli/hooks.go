// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/spf13/cobra"

// Hooks returns the names under which kubectl finds the plugin besides its own, each with the arguments that it stands for: kubectl asks
// kubectl_complete-slipstream for completions, and runs kubectl-create-sync for kubectl create sync.
func Hooks() map[string][]string {
	return map[string][]string{
		"kubectl_complete-slipstream": {cobra.ShellCompRequestCmd},
		"kubectl-create-sync":         {"sync"},
	}
}
