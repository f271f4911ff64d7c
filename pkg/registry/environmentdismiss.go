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

// dismiss is the subresource dismiss of an Environment. It puts aside everything that the environment prompts for.
func (r *environmentRequests) dismiss() *requestREST[*configbutler.Dismissal] {
	return &requestREST[*configbutler.Dismissal]{
		newRequest: func() *configbutler.Dismissal { return &configbutler.Dismissal{} },
		judge: func(_ context.Context, name string, request *configbutler.Dismissal) error {
			return invalid("Dismissal", name, validation.ValidateDismissal(request, name))
		},
		carryOut: r.carryOutDismissal,
	}
}

func (r *environmentRequests) carryOutDismissal(ctx context.Context, name string, request *configbutler.Dismissal, dryRun []string) error {
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
		request.Status = configbutler.RequestOutcome{Accepted: true, Message: "There is nothing to dismiss: " + environmentSentence(environment)}
		return nil
	}
	if err := r.moves.prompts.putAside(ctx, environment, offer, record, dryRun, func() error {
		_, _, err := r.moves.move(ctx, record, v1alpha1.SyncStateDismissed, dryRun, nil)
		return err
	}); err != nil {
		return err
	}
	request.Status = dismissal(offer, record, dryRun)
	return nil
}

// dismissible is the record about what workloads refer to that an environment prompts for, empty when there is none. One that is
// being taken, or will be, cannot be put aside.
func (r *environmentRequests) dismissible(ctx context.Context, environment *configbutler.Environment) (string, error) {
	name := environment.Status.LatestDependencySync
	if name == "" {
		return "", nil
	}
	record, err := recordCalled(ctx, r.records, name)
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
		return "", unmoved(record, err)
	}
	return name, nil
}

// dismissal says what has been put aside.
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

// undismiss is the subresource undismiss of an Environment. It has the environment prompt again for what was put aside. A record that
// was dismissed stays so, because that is its end.
func (r *environmentRequests) undismiss() *requestREST[*configbutler.Undismissal] {
	return &requestREST[*configbutler.Undismissal]{
		newRequest: func() *configbutler.Undismissal { return &configbutler.Undismissal{} },
		judge: func(_ context.Context, name string, request *configbutler.Undismissal) error {
			return invalid("Undismissal", name, validation.ValidateUndismissal(request, name))
		},
		carryOut: r.carryOutUndismissal,
	}
}

func (r *environmentRequests) carryOutUndismissal(
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
		return nil
	})
	if err != nil {
		return err
	}
	request.Status = configbutler.RequestOutcome{Accepted: true}
	answer := &request.Status
	switch {
	case !dismissed:
		answer.Message = "Nothing was dismissed: " + environmentSentence(environment)
	case dryrun.IsDryRun(dryRun):
		answer.Message = "Would offer again what was dismissed (dry run)"
	default:
		answer.Message = "What was dismissed is offered again, and dismissals are counted anew: " + environmentSentence(environment)
	}
	return nil
}
