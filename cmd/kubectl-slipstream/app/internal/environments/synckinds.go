// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// environmentSync syncs environments.
type environmentSync struct {
	*requester
	action    string
	workloads []string
	spec      v1alpha1.SyncRequestSpec
}

// environmentFlags are the flags for environments only.
var environmentFlags = []string{"action", "force", "workloads", "expected-catalog-sync", "expected-dependency-sync"}

// actions are the values of --action.
var actions = map[string]v1alpha1.SyncAction{
	"all": v1alpha1.SyncActionAll, "catalog": v1alpha1.SyncActionCatalog, "cluster": v1alpha1.SyncActionCluster,
}

func (s *environmentSync) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&s.action, "action", "all", "catalog (workloads, with what they refer to), cluster (only what workloads refer to) or all.")
	flags.BoolVar(&s.spec.Force, "force", false,
		"Begin although a window is closed or a revision is pinned, and take over objects that the environment has not written.")
	flags.StringSliceVar(&s.workloads, "workloads", nil, "Sync only these workloads, such as deployment/web,cronjob/report. Can be repeated.")
	flags.StringVar(&s.spec.ExpectedCatalogSync, "expected-catalog-sync", "",
		"Fail if the catalog offers something newer than this status.latestCatalogSync.")
	flags.StringVar(&s.spec.ExpectedDependencySync, "expected-dependency-sync", "",
		"Fail if there are newer changes than this status.latestDependencySync.")
}

// parse sets the spec of requests.
func (s *environmentSync) parse() error {
	action, known := actions[s.action]
	if !known {
		return fmt.Errorf("--action is %q: it is all, catalog or cluster", s.action)
	}
	s.spec.Action = action
	for _, argument := range s.workloads {
		workload, err := cli.ParseWorkload(argument)
		if err != nil {
			return fmt.Errorf("--workloads: %w", err)
		}
		s.spec.Workloads = append(s.spec.Workloads, workload)
	}
	return nil
}

func (s *environmentSync) sync(ctx context.Context, name string, progress *cli.Progress) *answer {
	response, err := s.API.Environments(s.Namespace).Sync(ctx, name, &v1alpha1.SyncRequest{Spec: s.spec}, s.Options())
	if err != nil {
		return &answer{of: cli.Environment, name: name, err: s.NoResponse(ctx, cli.Environment, name, err)}
	}
	a := respond(cli.Environment, name, response, &response.Status.RequestOutcome)
	a.plan = response.Status.Plan
	s.carryOut(ctx, a, progress)
	return a
}

// catalogSync has the sources of catalogs read.
type catalogSync struct{ *requester }

func (s *catalogSync) sync(ctx context.Context, name string, progress *cli.Progress) *answer {
	response, err := s.API.AppCatalogs(s.Namespace).Sync(ctx, name, &v1alpha1.CatalogSync{}, s.Options())
	if err != nil {
		return &answer{of: cli.AppCatalog, name: name, err: s.NoResponse(ctx, cli.AppCatalog, name, err)}
	}
	a := respond(cli.AppCatalog, name, response, &response.Status)
	s.carryOut(ctx, a, progress)
	return a
}

// destinationSync compares GitDestinations with the cluster.
type destinationSync struct {
	*requester
	spec v1alpha1.MirrorSyncSpec
}

// destinationFlags are the flags for GitDestinations only.
var destinationFlags = []string{"types", "full"}

func (s *destinationSync) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&s.spec.Types, "types", nil, "Compare only these types of a GitDestination, such as deployments.apps,configmaps. Can be repeated.")
	flags.BoolVar(&s.spec.Full, "full", false, "Read the branch of a GitDestination again before it is compared.")
}

func (s *destinationSync) sync(ctx context.Context, name string, progress *cli.Progress) *answer {
	response, err := s.API.GitDestinations(s.Namespace).Sync(ctx, name, &v1alpha1.MirrorSync{Spec: s.spec}, s.Options())
	if err != nil {
		return &answer{of: cli.GitDestination, name: name, err: s.NoResponse(ctx, cli.GitDestination, name, err)}
	}
	a := &answer{of: cli.GitDestination, name: name, object: response, state: response.Status.Message}
	if s.Wait && !s.IsDryRun() {
		a.err = s.follow(ctx, a, response, progress)
	}
	return a
}

// follow waits until a comparison has ended, and updates the answer with what it has found.
func (s *destinationSync) follow(ctx context.Context, a *answer, response *v1alpha1.MirrorSync, progress *cli.Progress) error {
	status := &response.Status
	if !isCompared(status.Found) {
		err := cli.Follow(ctx, s.API.GitDestinationStatuses(s.Namespace), cli.GitDestinationStatus, a.name, &v1alpha1.GitDestinationStatus{},
			func(now *v1alpha1.GitDestinationStatus) (bool, error) {
				i := slices.IndexFunc(now.Status.Syncs, func(sync v1alpha1.SyncProgress) bool { return sync.ID == status.ID })
				if i < 0 {
					progress.Say(now.Status.State)
					return false, s.isListed(ctx, a, status.ID)
				}
				status.Found = &now.Status.Syncs[i]
				a.state = summary.Comparison(status.Found)
				progress.Say(a.state)
				return isCompared(status.Found), nil
			})
		if cli.IsOver(err) {
			return fmt.Errorf("stopped waiting for %s: %w; the sync continues, and %s shows its progress", a.of.Named(a.name), err, s.watchCommand(a))
		}
		if err != nil {
			return err
		}
	}
	a.state = summary.Comparison(status.Found)
	status.Message = a.state
	if failed := status.Found.Failures; len(failed) > 0 {
		return cli.Failed("not all types could be compared: those are tried again")
	}
	return nil
}

// isListed returns an error if a request neither waits nor has a result in the API any more: only the last results are kept. Without an answer
// it is taken as one that waits.
func (s *destinationSync) isListed(ctx context.Context, a *answer, id string) error {
	destination, err := s.API.GitDestinations(s.Namespace).Get(ctx, a.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return err
	case err != nil, slices.ContainsFunc(destination.Status.PendingSyncs, func(sync v1alpha1.PendingSync) bool { return sync.ID == id }):
		return nil //nolint:nilerr // The user may not read it, or the server is restarted.
	}
	// What has been seen of the status can be older than the destination. A request leaves the destination after its result is in the status.
	now, err := s.API.GitDestinationStatuses(s.Namespace).Get(ctx, a.name, metav1.GetOptions{})
	if err != nil || slices.ContainsFunc(now.Status.Syncs, func(sync v1alpha1.SyncProgress) bool { return sync.ID == id }) {
		return nil //nolint:nilerr // As above.
	}
	return fmt.Errorf("the result of this sync of %s is no longer listed, because only the last ones are: see its commits, or sync again", a.of.Named(a.name))
}

func isCompared(found *v1alpha1.SyncProgress) bool {
	return found != nil && found.CompletionTime != nil
}
