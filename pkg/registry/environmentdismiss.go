// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// dismiss is the subresource dismiss of an Environment. It dismisses all of the environment's prompts.
func (r *environmentRequests) dismiss() *requestREST[*configbutler.Dismissal] {
	return &requestREST[*configbutler.Dismissal]{
		newRequest: func() *configbutler.Dismissal { return &configbutler.Dismissal{} },
		validate: func(_ context.Context, name string, request *configbutler.Dismissal) error {
			return invalid("Dismissal", name, validation.ValidateDismissal(request, name))
		},
		execute: r.executeDismissal,
	}
}

func (r *environmentRequests) executeDismissal(ctx context.Context, name string, request *configbutler.Dismissal, dryRun []string) error {
	if _, err := requester(ctx); err != nil {
		return err
	}
	environment, err := read[*configbutler.Environment](ctx, r.environments, name)
	if err != nil {
		return err
	}
	if environment.DeletionTimestamp != nil {
		return refused("environments", name, "it is being deleted")
	}
	offer := catalogOffer(environment)
	record, err := r.dismissible(ctx, environment)
	if err != nil && offer == "" {
		return err
	}
	if offer == "" && record == "" {
		request.Status = configbutler.RequestOutcome{Accepted: true, Message: "There is nothing to dismiss: " + environmentState(environment)}
		return nil
	}
	if err := r.moves.prompts.dismissPrompts(ctx, environment, offer, record, dryRun, func() error {
		_, _, err := r.moves.move(ctx, record, v1alpha1.SyncStateDismissed, dryRun, nil)
		return err
	}); err != nil {
		return err
	}
	request.Status = dismissal(offer, record, dryRun)
	return nil
}

// dismissible returns the open dependency record of an environment, empty if there is none. It returns an error if the
// record is being processed and can no longer be dismissed.
func (r *environmentRequests) dismissible(ctx context.Context, environment *configbutler.Environment) (string, error) {
	name := environment.Status.LatestDependencySync
	if name == "" {
		return "", nil
	}
	record, err := getRecord(ctx, r.records, name)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if record.Status.State == v1alpha1.SyncStateDismissed {
		return name, nil
	}
	if err := syncstatus.CheckTransition(record.Spec.Type, record.Status.State, v1alpha1.SyncStateDismissed); err != nil {
		return "", transitionError(record, err)
	}
	return name, nil
}

// dismissal returns the outcome of a dismissal.
func dismissal(offer, record string, dryRun []string) configbutler.RequestOutcome {
	var what []string
	outcome := configbutler.RequestOutcome{Accepted: true}
	if offer != "" {
		what = append(what, fmt.Sprintf("what the catalog offers (SyncStatus %s), until it offers something else", offer))
	}
	if record != "" {
		what = append(what, fmt.Sprintf("what has changed of what workloads refer to (SyncStatus %s), until more does", record))
		outcome.SyncStatuses = []string{record}
	}
	outcome.Message = fmt.Sprintf("Dismissed %s; nothing else has changed", strings.Join(what, ", and "))
	if dryrun.IsDryRun(dryRun) {
		outcome.Message = fmt.Sprintf("Would dismiss %s (dry run)", strings.Join(what, ", and "))
	}
	return outcome
}

// undismiss is the subresource undismiss of an Environment. The environment prompts again for what was dismissed. A
// dismissed record stays dismissed, because that state is final.
func (r *environmentRequests) undismiss() *requestREST[*configbutler.Undismissal] {
	return &requestREST[*configbutler.Undismissal]{
		newRequest: func() *configbutler.Undismissal { return &configbutler.Undismissal{} },
		validate: func(_ context.Context, name string, request *configbutler.Undismissal) error {
			return invalid("Undismissal", name, validation.ValidateUndismissal(request, name))
		},
		execute: r.executeUndismissal,
	}
}

func (r *environmentRequests) executeUndismissal(
	ctx context.Context, name string, request *configbutler.Undismissal, dryRun []string,
) error {
	if _, err := requester(ctx); err != nil {
		return err
	}
	dismissed := false
	environment, err := change(ctx, r.statuses, name, dryRun, func(environment *configbutler.Environment) error {
		status := &environment.Status
		dismissed = status.DismissedCatalogSync != "" || status.DismissedDependencySync != "" || status.Dismissals > 0
		status.DismissedCatalogSync, status.DismissedDependencySync, status.Dismissals = "", "", 0
		status.DismissedBy, status.DismissedAt = "", nil
		return nil
	})
	if err != nil {
		return err
	}
	request.Status = configbutler.RequestOutcome{Accepted: true}
	answer := &request.Status
	switch {
	case !dismissed:
		answer.Message = "Nothing was dismissed: " + environmentState(environment)
	case dryrun.IsDryRun(dryRun):
		answer.Message = "Would offer again what was dismissed (dry run)"
	default:
		answer.Message = "What was dismissed is offered again, and dismissals are counted anew: " + environmentState(environment)
	}
	return nil
}
