// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const diffExample = `  # What a sync of the environment alice would change
  kubectl slipstream diff alice -n teams

`

const valuesExample = `  # Which values of Secrets a sync of the environment alice would change
  kubectl slipstream secretdiff alice -n teams`

// diff is the command diff for an environment, and secretdiff.
type diff struct {
	genericiooptions.IOStreams
	config genericclioptions.RESTClientGetter
	print  *genericclioptions.PrintFlags
	// secrets shows only Secrets, with their values.
	secrets bool
}

// NewDiff adds the diff of an environment to the command that compares objects with what they were, past. Past runs if --from is set.
func NewDiff(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter, past *cobra.Command) *cobra.Command {
	d := &diff{IOStreams: streams, config: config, print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
	compare, comparison := past.RunE, past.Long
	past.Use = "diff ENVIRONMENT | diff [TYPE | TYPE/NAME...] --from T"
	past.Short = "Show what a sync of an Environment would change, or compare objects with what they were"
	past.Long = "Without --from: show what a sync of an Environment would change, field by field, with who made the change in the source, how that is\n" +
		"known, and the commit. A field that another field manager owns here is shown with it. Values of Secrets are not shown. Only\n" +
		"this form takes -o: json and yaml print the EnvironmentDiff of the server.\n\n" +
		"With --from, and only then with --to, -l and --destination: " + strings.ToLower(comparison[:1]) + comparison[1:]
	past.Example = diffExample + past.Example
	past.RunE = func(command *cobra.Command, args []string) error {
		if command.Flags().Changed("from") {
			if d.print.OutputFlagSpecified() {
				return errors.New("--output is only for an Environment, without --from")
			}
			return compare(command, args)
		}
		name, err := environmentArgument(args)
		if err != nil {
			return err
		}
		for _, flag := range []string{"to", "selector", "destination"} {
			if command.Flags().Changed(flag) {
				return fmt.Errorf("--%s is only for a comparison with what objects were: --from is missing", flag)
			}
		}
		return d.run(command.Context(), name)
	}
	d.print.AddFlags(past)
	return past
}

func newSecretDiff(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	d := &diff{
		IOStreams: streams, config: config, print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme), secrets: true,
	}
	command := &cobra.Command{
		Use:   "secretdiff ENVIRONMENT",
		Short: "Show which values of Secrets a sync of an Environment would change",
		Long: "Show the Secrets that a sync of an Environment would change, with their values in clear text. You need the permission to get\n" +
			"environments/secretdiff, and to get the Secrets in the source and in the target. diff shows which keys differ, without values.\n" +
			"The exit code is 0 if there is no difference, and 1 if there is one.",
		Example: valuesExample,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			_, name, err := cli.ParseName(args[0], cli.Environment)
			if err != nil {
				return err
			}
			return d.run(command.Context(), name)
		},
	}
	d.print.AddFlags(command)
	return command
}

// environmentArgument returns the name of an environment, which may have its type before it.
func environmentArgument(args []string) (string, error) {
	switch len(args) {
	case 1:
		if _, name, err := cli.ParseName(args[0], cli.Environment); err == nil {
			return name, nil
		}
	case 2:
		if _, err := cli.ParseKind(args[0], cli.Environment); err == nil {
			return args[1], nil
		}
	}
	return "", errors.New("--from is missing: it is a time, a time ago such as 24h, a commit, or the name of a Change. " +
		"Without it, name one Environment, as in kubectl slipstream diff alice")
}

func (d *diff) run(ctx context.Context, name string) error {
	namespace, _, err := d.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	api, err := cli.Connect(d.config)
	if err != nil {
		return err
	}
	get := api.Environments(namespace).Diff
	if d.secrets {
		get = api.Environments(namespace).SecretDiff
	}
	found, err := get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	plan := &found.Status
	if d.secrets {
		plan.Changes = slices.DeleteFunc(plan.Changes, func(c v1alpha1.ObjectChange) bool { return !isSecret(&c) })
		plan.Unchanged = 0 // The server counts objects of all kinds.
	}
	if err := d.show(found); err != nil {
		return err
	}
	for _, warning := range plan.Warnings {
		_, _ = fmt.Fprintln(d.ErrOut, "Warning: "+printable.Line(warning)) // Nothing depends on it.
	}
	if len(plan.Changes) > 0 {
		return cli.ErrDifferent
	}
	return nil
}

func (d *diff) show(found *v1alpha1.EnvironmentDiff) error {
	if d.print.OutputFlagSpecified() {
		printer, err := d.print.ToPrinter()
		if err != nil {
			return err
		}
		return printer.PrintObj(found, d.Out)
	}
	printer := &diffPrinter{out: d.Out, colours: cli.HasColours(d.Out), decode: d.secrets, now: time.Now()}
	return printer.print(&found.Status)
}

func isSecret(change *v1alpha1.ObjectChange) bool {
	return change.APIVersion == "v1" && change.Kind == "Secret"
}
