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
type retry struct {
	requester
	targets
}

func newRetry(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	r := &retry{newRequester(streams, config), targets{kinds: []cli.Kind{cli.SyncStatus, cli.Environment, cli.AppCatalog}}}
	command := &cobra.Command{
		Use:   "retry (SYNCSTATUS | environment/NAME | catalog/NAME | TYPE -l SELECTOR)",
		Short: "Try again what failed, and wait for the result",
		Long: "Try again what failed, before its time or after the last attempt, and wait for the result. With an Environment or a catalog, it is\n" +
			"its newest failed SyncStatus. With -l, those without one are left out.",
		Example: "  kubectl slipstream retry alice-x7k2p\n\n  kubectl slipstream retry environment/alice\n\n" +
			"  # All environments of a team, after an outage\n  kubectl slipstream retry environment -l team=a",
		RunE: func(command *cobra.Command, args []string) error { return r.run(command.Context(), args) },
	}
	r.addTo(command)
	r.addFlags(command)
	r.addWaitFlags(command)
	return command
}

func (r *retry) run(ctx context.Context, args []string) error {
	of, name, err := r.parse(args)
	if err != nil {
		return err
	}
	if err := r.Begin(); err != nil {
		return err
	}
	ctx, cancel := r.Limit(ctx)
	defer cancel()
	if name == "" {
		return r.retrySelected(ctx, of)
	}
	record, err := r.failedOf(ctx, of, name)
	switch {
	case err != nil:
		return err
	case record == "":
		return cli.Conflict("no SyncStatus of %s has failed, so nothing is left to try", of.Named(name))
	}
	return r.report(r.retry(ctx, record, r.progress()))
}

// retrySelected tries again what failed of the objects that the selector matches.
func (r *retry) retrySelected(ctx context.Context, of cli.Kind) error {
	names, err := r.find(ctx, &r.requester, of)
	if err != nil {
		return err
	}
	var records []string
	for _, name := range names {
		record, err := r.failedOf(ctx, of, name)
		if err != nil {
			return err
		}
		if record != "" {
			records = append(records, record)
		}
	}
	if len(records) == 0 {
		return cli.Conflict("no SyncStatus of the %d %s with the labels %s has failed, so nothing is left to try", len(names), of.Resource, r.selector)
	}
	return r.reportAll(r.together(cli.SyncStatus, records, func(record string, progress *cli.Progress) *answer {
		return r.retry(ctx, record, progress)
	}))
}

// retry tries a record again, and waits for the result.
func (r *retry) retry(ctx context.Context, record string, progress *cli.Progress) *answer {
	response, err := r.API.SyncStatuses(r.Namespace).Retry(ctx, record, &v1alpha1.Retry{}, r.Options())
	if err != nil {
		return &answer{of: cli.SyncStatus, name: record, err: r.NoResponse(ctx, cli.SyncStatus, record, err)}
	}
	a := respond(cli.SyncStatus, record, response, &response.Status)
	r.carryOut(ctx, a, progress)
	return a
}

// failedOf returns the newest record of an environment or catalog that can be tried again, empty if there is none. A record is returned as it
// is: the server says whether it has failed.
func (r *retry) failedOf(ctx context.Context, of cli.Kind, name string) (string, error) {
	if of.Resource == cli.SyncStatus.Resource {
		return name, nil
	}
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
		return "", r.exists(ctx, of, name)
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
