// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the kubectl plugin of Slipstream.
package app

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/dashboard"
	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/environments"
	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/history"
	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/notifications"
	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/pipelines"
	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/setup"
)

const long = `Follow changes in Git, take them back, and sync environments.

Start with: kubectl slipstream check

Exit codes: 0 done, 1 there are differences, 2 a wrong request or another error, 3 it failed, 4 a conflict, 5 a permission is missing,
124 the time limit is reached, 130 the wait was interrupted. After the last two a request continues.`

// NewCommand returns the plugin. It does not print errors; ExitCode distinguishes them.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command { return newCommand(streams, nil) }

// newCommand returns the plugin. If fixed is not nil, it has the cluster and the user, whatever kubeconfigs have.
func newCommand(streams genericiooptions.IOStreams, fixed *rest.Config) *cobra.Command {
	warnings := rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	config := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWrapConfigFn(
		func(found *rest.Config) *rest.Config {
			if fixed != nil {
				found = rest.CopyConfig(fixed)
			}
			found.QPS, found.Burst = 50, 300 // As in kubectl.
			found.WarningHandler = warnings
			return found
		})
	root := &cobra.Command{
		Use:           "kubectl-slipstream",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl slipstream"},
		Short:         "Follow changes in Git, take them back, and sync environments",
		Long:          long,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	config.AddFlags(root.PersistentFlags())
	root.AddCommand(history.NewCommands(streams, config)...)
	root.AddCommand(environments.NewCommands(streams, config)...)
	root.AddCommand(environments.NewDiff(streams, config, history.NewDiff(streams, config)))
	root.AddCommand(dashboard.NewCommand(streams, config, newCommand))
	root.AddCommand(pipelines.NewCommands(streams, config)...)
	root.AddCommand(notifications.NewCommands(streams, config)...)
	root.AddCommand(setup.NewCommands(streams, config)...)
	root.AddCommand(newOptions())
	root.InitDefaultCompletionCmd()
	addGroups(root)
	root.SetUsageTemplate(usage(root))
	utilruntime.Must(addCompletions(root, cli.NewCompleter(config))) // It fails only for flags that do not exist.
	explainArguments(root)
	explainErrors(root, config)
	return root
}

// explainArguments has the errors about arguments of all commands name what is missing, and the help.
func explainArguments(command *cobra.Command) {
	for _, child := range command.Commands() {
		if check := child.Args; check != nil {
			child.Args = func(command *cobra.Command, args []string) error {
				err := check(command, args)
				if err == nil {
					return nil
				}
				if wanted := firstArgument(command); len(args) == 0 && wanted != "" {
					err = fmt.Errorf("%s is missing", wanted)
				}
				return fmt.Errorf("%w\nSee '%s --help'", err, command.CommandPath())
			}
		}
		explainArguments(child)
	}
}

// firstArgument returns the first argument in the usage of a command, as in ENVIRONMENT or catalog/NAME. It is empty if there is none.
func firstArgument(command *cobra.Command) string {
	_, usage, _ := strings.Cut(command.Use, " ")
	if alternatives, _, grouped := strings.Cut(strings.TrimPrefix(usage, "("), ")"); grouped {
		return strings.ReplaceAll(alternatives, " | ", " or ")
	}
	first, _, _ := strings.Cut(usage, " ")
	return first
}

// explainErrors has the errors of all commands say what the user can do about them.
func explainErrors(command *cobra.Command, config genericclioptions.RESTClientGetter) {
	for _, child := range command.Commands() {
		if run := child.RunE; run != nil {
			child.RunE = func(command *cobra.Command, args []string) error {
				return cli.Explain(command.Context(), config, run(command, args))
			}
		}
		explainErrors(child, config)
	}
}

// IsFailure reports whether an error of the command is to be printed.
func IsFailure(err error) bool { return cli.IsFailure(err) }

// ExitCode returns the exit code for an error of the command.
func ExitCode(err error) int { return cli.ExitCode(err) }
