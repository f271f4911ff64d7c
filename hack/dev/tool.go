// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/devcluster/progress"
)

// tools are the commands that development clusters, tests and checks use, by their names in scripts.
var tools = map[string]programs.Tool{
	"cosign": programs.Cosign, "crane": programs.Crane, "gitea": programs.Gitea, "helm": programs.Helm, "helm3": programs.Helm3,
	"hugo": programs.Hugo, "kwok": programs.Kwok, "oauth2proxy": programs.OAuth2Proxy, "sops": programs.Sops,
	"sourcecontroller": programs.SourceController, "kustomizecontroller": programs.KustomizeController,
	"gitopsreverser": programs.GitOpsReverser,
}

func newToolCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "tool NAME",
		Short:     "Build a command for clusters, tests and checks if necessary, and print its path",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: slices.Sorted(maps.Keys(tools)),
		RunE: func(command *cobra.Command, arguments []string) error {
			root, err := programs.ModuleRoot(".")
			if err != nil {
				return err
			}
			var program string
			err = progress.NewReporter(command.ErrOrStderr()).Step("building "+arguments[0]+" (minutes, once)", func() (err error) {
				program, err = tools[arguments[0]].Build(command.Context(), root)
				return err
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), program)
			return err
		},
	}
}
