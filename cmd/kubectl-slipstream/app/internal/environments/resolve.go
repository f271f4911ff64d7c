// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const resolveExample = `  # See both sides of each field, and decide one by one
  kubectl slipstream resolve alice

  # Keep what the environment has, in all fields
  kubectl slipstream resolve alice --keep

  # Keep one field, and take what the catalog offers for the others
  kubectl slipstream resolve alice --keep=/spec/replicas --take

  # Take what the catalog offers for one workload
  kubectl slipstream resolve alice --take=deployment/web`

// resolve is the command resolve.
type resolve struct {
	requester
	keep, take []string
}

func newResolve(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	r := &resolve{requester: newRequester(streams, config)}
	command := &cobra.Command{
		Use:   "resolve ENVIRONMENT",
		Short: "Decide about the fields that were changed in an Environment and in its catalog",
		Long: "Show both sides of each field that was changed in an Environment and in its catalog, and decide which one stays. On a terminal it\n" +
			"asks field by field; --keep and --take decide about all fields, or about some: a field, KIND/NAME, or both as KIND/NAME/FIELD. The\n" +
			"sync then continues, and the command waits for it. Undecided fields stay in conflict.",
		Example: resolveExample,
		Args:    exactlyOne,
		RunE:    func(command *cobra.Command, args []string) error { return r.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringArrayVar(&r.keep, string(keep), nil, "Keep the environment's value of all fields, or of --keep=FIELD. Can be repeated.")
	flags.Lookup(string(keep)).NoOptDefVal = everything
	flags.StringArrayVar(&r.take, string(take), nil, "Take the catalog's value of all fields, or of --take=FIELD. Can be repeated.")
	flags.Lookup(string(take)).NoOptDefVal = everything
	r.addFlags(command)
	r.addWaitFlags(command)
	return command
}

// exactlyOne checks that there is one argument. A second one is often a field.
func exactlyOne(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("accepts one environment, and got %d arguments: write --keep=FIELD and --take=FIELD with an equals sign", len(args))
}

func (r *resolve) run(ctx context.Context, argument string) error {
	of, name, err := cli.ParseName(argument, cli.Environment)
	if err != nil {
		return err
	}
	if slices.Contains(r.keep, everything) && slices.Contains(r.take, everything) {
		return errors.New("--keep and --take cannot both decide about all fields: name some with --keep=FIELD or --take=FIELD")
	}
	if err := r.Begin(); err != nil {
		return err
	}
	conflicts, err := r.read(ctx, name)
	if err != nil {
		return err
	}
	if len(conflicts) == 0 {
		out := r.Out
		if r.Output.OutputFlagSpecified() {
			out = r.ErrOut // It is no object.
		}
		_, err := fmt.Fprintln(out, printable.Line(of.Named(name)+" has no conflicts"))
		return err
	}
	if err := r.decide(ctx, conflicts); err != nil {
		return err
	}
	if n := undecidedOf(conflicts); n > 0 {
		_, _ = fmt.Fprintf(r.ErrOut, "%s in conflict\n", fieldsThat(n, "stays", "stay")) // Nothing depends on it.
	}
	return r.request(ctx, of, name, conflicts)
}

// request requests what was decided, and waits for the sync. The time limit does not include the questions.
func (r *resolve) request(ctx context.Context, of cli.Kind, name string, conflicts []*conflict) error {
	ctx, cancel := r.Limit(ctx)
	defer cancel()
	request := &v1alpha1.ConflictResolution{Spec: resolution(conflicts)}
	response, err := r.API.Environments(r.Namespace).Resolve(ctx, name, request, r.Options())
	if err != nil {
		return r.NoResponse(ctx, of, name, err)
	}
	a := respond(of, name, response, &response.Status)
	r.carryOut(ctx, a, r.progress())
	return r.report(a)
}

// read returns the conflicts of an environment, with both sides if the user may read its diff.
func (r *resolve) read(ctx context.Context, name string) ([]*conflict, error) {
	environment, err := r.conflicted(ctx, name)
	if err != nil || len(environment.Status.Conflicts) == 0 {
		return nil, err
	}
	diff, err := r.API.Environments(r.Namespace).Diff(ctx, name, metav1.GetOptions{})
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		_, _ = fmt.Fprintln(r.ErrOut, printable.Line("The values are not shown: "+err.Error())) // The fields can be decided about.
		diff = nil
	}
	return conflictsOf(environment, diff), nil
}

// conflicted returns an environment. If a sync has just ended in a conflict, it waits until the status lists the fields, which it does a
// moment after the record of the sync says so.
func (r *resolve) conflicted(ctx context.Context, name string) (environment *v1alpha1.Environment, err error) {
	environment, err = r.API.Environments(r.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || len(environment.Status.Conflicts) > 0 {
		return environment, err
	}
	records, err := r.API.SyncStatuses(r.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelEnvironment: name}).String(),
	})
	if err != nil {
		return nil, err
	}
	isConflicted := func(record v1alpha1.SyncStatus) bool { return record.Status.State == v1alpha1.SyncStateConflicted }
	if !slices.ContainsFunc(records.Items, isConflicted) {
		return environment, nil
	}
	waiting, cancel := context.WithTimeout(ctx, statusLag)
	defer cancel()
	err = cli.Follow(waiting, r.API.Environments(r.Namespace), cli.Environment, name, environment, func(e *v1alpha1.Environment) (bool, error) {
		environment = e
		return len(e.Status.Conflicts) > 0, nil
	})
	if waiting.Err() != nil && ctx.Err() == nil {
		return environment, nil
	}
	return environment, err
}

// decide decides about the conflicts, by the flags or by asking.
func (r *resolve) decide(ctx context.Context, conflicts []*conflict) error {
	if len(r.keep) == 0 && len(r.take) == 0 {
		return r.ask(ctx, conflicts)
	}
	if err := decide(conflicts, keep, r.keep); err != nil {
		return err
	}
	if err := decide(conflicts, take, r.take); err != nil {
		return err
	}
	switch {
	case slices.Contains(r.keep, everything):
		decideRest(conflicts, keep)
	case slices.Contains(r.take, everything):
		decideRest(conflicts, take)
	}
	return nil
}

// ask shows the conflicts, and asks about them if there is a terminal.
func (r *resolve) ask(ctx context.Context, conflicts []*conflict) error {
	if cli.IsTerminal(r.In) {
		return askAll(ctx, cli.NewQuestions(r.In, r.ErrOut), r.ErrOut, conflicts)
	}
	for _, c := range conflicts {
		if err := c.print(r.Out); err != nil {
			return err
		}
	}
	return cli.Conflict("%s for a decision, and there is no terminal to ask on: add --keep, --take, --keep=FIELD or --take=FIELD",
		fieldsThat(len(conflicts), "waits", "wait"))
}

// fieldsThat returns a number of fields with the verb for one or for several.
func fieldsThat(n int, one, several string) string {
	verb := several
	if n == 1 {
		verb = one
	}
	return summary.Count(n, "field") + " " + verb
}

// askAll asks about each conflict. The end of the answers leaves the others undecided.
func askAll(ctx context.Context, questions *cli.Questions, out io.Writer, conflicts []*conflict) error {
	for i, c := range conflicts {
		if err := c.print(out); err != nil {
			return err
		}
		if c.isPatched() {
			c.set(keep)
			continue
		}
		over, err := askOne(ctx, questions, fmt.Sprintf("%d of %d: (k)eep, (t)ake or (s)kip? ", i+1, len(conflicts)), c)
		if err != nil {
			return err
		}
		if over {
			break
		}
	}
	for _, c := range conflicts {
		if c.decided != undecided && !c.isPatched() {
			return nil
		}
	}
	return cli.Conflict("nothing is decided, and nothing is written")
}

// askOne asks until the answer is valid. It reports whether there are no more answers.
func askOne(ctx context.Context, questions *cli.Questions, question string, c *conflict) (over bool, err error) {
	for {
		answer, err := questions.Ask(ctx, question)
		over := errors.Is(err, io.EOF)
		if err != nil && !over {
			return false, err
		}
		switch answer {
		case "k", "keep":
			c.set(keep)
			return over, nil
		case "t", "take":
			c.set(take)
			return over, nil
		case "s", "skip":
			return over, nil
		}
		if over {
			return true, nil
		}
	}
}
