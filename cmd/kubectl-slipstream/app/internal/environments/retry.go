// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// retry is the command retry.
type retry struct{ requester }

func newRetry(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	r := &retry{newRequester(streams, config)}
	command := &cobra.Command{
		Use:   "retry (SYNCSTATUS | environment/NAME | catalog/NAME)",
		Short: "Try again what failed, and wait for the result",
		Long: "Try again what failed, before its time or after the last attempt, and wait for the result. With an Environment or a catalog, it is\n" +
			"its newest failed SyncStatus.",
		Example: "  kubectl slipstream retry alice-x7k2p\n\n  kubectl slipstream retry environment/alice",
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return r.run(command.Context(), args[0]) },
	}
	r.addFlags(command)
	r.addWaitFlags(command)
	return command
}

func (r *retry) run(ctx context.Context, argument string) error {
	of, name, err := cli.ParseName(argument, cli.SyncStatus, cli.Environment, cli.AppCatalog)
	if err != nil {
		return err
	}
	if err := r.Begin(); err != nil {
		return err
	}
	ctx, cancel := r.Limit(ctx)
	defer cancel()
	if of.Resource != cli.SyncStatus.Resource {
		if name, err = r.failedOf(ctx, of, name); err != nil {
			return err
		}
	}
	response, err := r.API.SyncStatuses(r.Namespace).Retry(ctx, name, &v1alpha1.Retry{}, r.Options())
	if err != nil {
		return r.NoResponse(ctx, cli.SyncStatus, name, err)
	}
	a := respond(cli.SyncStatus, name, response, &response.Status)
	r.carryOut(ctx, a, r.progress())
	return r.report(a)
}

// failedOf returns the newest record of an environment or catalog that can be tried again.
func (r *retry) failedOf(ctx context.Context, of cli.Kind, name string) (string, error) {
	label := v1alpha1.LabelEnvironment
	if of.Resource == cli.AppCatalog.Resource {
		label = v1alpha1.LabelCatalog
	}
	list, err := r.API.SyncStatuses(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{label: name}).String()})
	if err != nil {
		return "", err
	}
	var newest *v1alpha1.SyncStatus
	for i := range list.Items {
		record := &list.Items[i]
		isFailed := record.Status.State != v1alpha1.SyncStateConflicted &&
			syncstatus.CheckTransition(record.Spec.Type, record.Status.State, v1alpha1.SyncStateRetrying) == nil
		if isFailed && (newest == nil || newest.Status.DetectedAt.Before(&record.Status.DetectedAt)) {
			newest = record
		}
	}
	if newest == nil {
		if err := r.exists(ctx, of, name); err != nil {
			return "", err
		}
		return "", cli.Conflict("no SyncStatus of %s has failed, so nothing is left to try", of.Named(name))
	}
	return newest.Name, nil
}

// exists returns an error if an environment or catalog does not exist.
func (r *retry) exists(ctx context.Context, of cli.Kind, name string) (err error) {
	if of.Resource == cli.AppCatalog.Resource {
		_, err = r.API.AppCatalogs(r.Namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
	_, err = r.API.Environments(r.Namespace).Get(ctx, name, metav1.GetOptions{})
	return err
}
