// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const rollbackExample = `  # Go back to the revision before the current one
  kubectl slipstream rollback alice

  # Go back to a revision of the history
  kubectl slipstream rollback alice --to 6

  # Offer an earlier content of a catalog again
  kubectl slipstream rollback catalog/shop --to 1`

// rollback is the command rollback.
type rollback struct {
	requester
	to int64
}

func newRollback(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	r := &rollback{requester: newRequester(streams, config)}
	command := &cobra.Command{
		Use:   "rollback (ENVIRONMENT | catalog/NAME)",
		Short: "Go back to an earlier revision, and stay there until unpin",
		Long: "Bring an Environment or a catalog back to an earlier revision of its status.history, and wait for the result. It is pinned: it stays\n" +
			"there until kubectl slipstream unpin.",
		Example: rollbackExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return r.run(command.Context(), args[0]) },
	}
	command.Flags().Int64Var(&r.to, "to", 0, "The revision, as in status.history. 0 means the one before the current one.")
	r.addFlags(command)
	r.addWaitFlags(command)
	return command
}

func (r *rollback) run(ctx context.Context, argument string) error {
	of, name, err := cli.ParseName(argument, cli.Environment, cli.AppCatalog)
	if err != nil {
		return err
	}
	if r.to < 0 {
		return fmt.Errorf("--to is %d: it is a revision of status.history, or 0 for the one before the current one", r.to)
	}
	if err := r.Begin(); err != nil {
		return err
	}
	ctx, cancel := r.Limit(ctx)
	defer cancel()
	request := &v1alpha1.Rollback{Spec: v1alpha1.RollbackSpec{Revision: r.to}}
	if r.to == 0 {
		if request.Spec.Revision, err = r.previous(ctx, of, name); err != nil {
			return err
		}
	}
	send := r.API.Environments(r.Namespace).Rollback
	if of.Resource == cli.AppCatalog.Resource {
		send = r.API.AppCatalogs(r.Namespace).Rollback
	}
	response, err := send(ctx, name, request, r.Options())
	if err != nil {
		return r.NoResponse(ctx, of, name, err)
	}
	a := respond(of, name, response, &response.Status)
	r.carryOut(ctx, a, r.progress())
	if len(a.records) > 0 && a.err == nil {
		a.state = fmt.Sprintf("Went to what revision %d was, and stays there until kubectl slipstream unpin %s%s",
			request.Spec.Revision, argument, r.InNamespace(of))
	}
	return r.report(a)
}

// previous returns the revision before the current one, and says which it is.
func (r *rollback) previous(ctx context.Context, of cli.Kind, name string) (int64, error) {
	current, history, err := r.history(ctx, of, name)
	if err != nil {
		return 0, err
	}
	for _, revision := range history {
		if revision.Revision != current {
			_, _ = fmt.Fprintf(r.ErrOut, "From revision %d to revision %d of %s\n", current, revision.Revision,
				revision.Time.UTC().Format(time.RFC3339)) // Nothing depends on it.
			return revision.Revision, nil
		}
	}
	return 0, cli.Conflict("status.history of %s has no revision beside the current one", of.Named(name))
}

// history returns the current revision and those that a rollback can return to, the newest first.
func (r *rollback) history(ctx context.Context, of cli.Kind, name string) (int64, []v1alpha1.CatalogRevision, error) {
	if of.Resource == cli.AppCatalog.Resource {
		catalog, err := r.API.AppCatalogs(r.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return 0, nil, err
		}
		return catalog.Status.Revision, catalog.Status.History, nil
	}
	environment, err := r.API.Environments(r.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, nil, err
	}
	return environment.Status.AppliedRevision, environment.Status.History, nil
}
