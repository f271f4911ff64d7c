// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// recordRequests implements the request subresources of SyncStatuses. They only change the state of a record and the
// fields that go with it.
type recordRequests struct {
	// records updates SyncStatuses. The other stores are read.
	records, catalogs, environments *genericregistry.Store
	prompts                         *prompts
	clock                           clock.PassiveClock
}

// dismiss is the subresource dismiss.
func (r *recordRequests) dismiss() *requestREST[*configbutler.Dismissal] {
	return &requestREST[*configbutler.Dismissal]{
		newRequest: func() *configbutler.Dismissal { return &configbutler.Dismissal{} },
		validate: func(_ context.Context, name string, request *configbutler.Dismissal) error {
			return invalid("Dismissal", name, validation.ValidateDismissal(request, name))
		},
		execute: r.executeDismissal,
	}
}

func (r *recordRequests) executeDismissal(ctx context.Context, name string, request *configbutler.Dismissal, dryRun []string) error {
	record, already, err := r.dismissed(ctx, name, dryRun)
	if err != nil {
		return err
	}
	message := "Dismissed; nothing else has changed"
	switch {
	case already:
		message = fmt.Sprintf("%s has dismissed it already", record.Status.ResolvedBy)
	case dryrun.IsDryRun(dryRun):
		message = "Would be dismissed (dry run)"
	}
	request.Status = outcomeOf(record, message)
	return nil
}

// dismissed dismisses a record. If an environment prompts for it, the prompt is removed and the dismissal counted.
func (r *recordRequests) dismissed(
	ctx context.Context, name string, dryRun []string,
) (record *v1alpha1.SyncStatus, already bool, err error) {
	move := func(dryRun []string) error {
		record, already, err = r.move(ctx, name, v1alpha1.SyncStateDismissed, dryRun, nil)
		return err
	}
	if err := move([]string{metav1.DryRunAll}); err != nil {
		return nil, false, err
	}
	environment, err := r.prompting(ctx, record)
	if err != nil {
		return nil, false, err
	}
	if environment == nil {
		if err := move(dryRun); err != nil {
			return record, already, err
		}
		if !already && !dryrun.IsDryRun(dryRun) {
			countRecordDismissal(record.Spec.Type)
		}
		return record, already, nil
	}
	err = r.prompts.dismissPrompts(ctx, environment, "", name, dryRun, func() error { return move(dryRun) })
	return record, already, err
}

// prompting returns the environment that prompts for a record, nil if none does.
func (r *recordRequests) prompting(ctx context.Context, record *v1alpha1.SyncStatus) (*configbutler.Environment, error) {
	if record.Spec.Type != v1alpha1.SyncTypeDependency {
		return nil, nil
	}
	environment, err := read[*configbutler.Environment](ctx, r.environments, record.Spec.Subject.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || environment.UID != record.Spec.Subject.UID || environment.Status.LatestDependencySync != record.Name {
		return nil, err
	}
	return environment, nil
}

// retry is the subresource retry.
func (r *recordRequests) retry() *requestREST[*configbutler.Retry] {
	return &requestREST[*configbutler.Retry]{
		newRequest: func() *configbutler.Retry { return &configbutler.Retry{} },
		validate: func(_ context.Context, name string, request *configbutler.Retry) error {
			return invalid("Retry", name, validation.ValidateRetry(request, name))
		},
		execute: r.executeRetry,
	}
}

func (r *recordRequests) executeRetry(ctx context.Context, name string, request *configbutler.Retry, dryRun []string) error {
	held := ""
	record, already, err := r.move(ctx, name, v1alpha1.SyncStateRetrying, dryRun, func(record *v1alpha1.SyncStatus) (err error) {
		held, err = r.checkRetry(ctx, record)
		return err
	})
	if err != nil {
		return err
	}
	message := fmt.Sprintf("Attempt %d is under way; status.state says what comes of it", record.Status.Attempts)
	switch {
	case dryrun.IsDryRun(dryRun):
		message = fmt.Sprintf("Attempt %d would be made (dry run)", record.Status.Attempts)
	case held != "":
		message = fmt.Sprintf("Attempt %d is made as soon as it can be: %s", record.Status.Attempts, held)
	case already:
		message = fmt.Sprintf("Attempt %d is under way already", record.Status.Attempts)
	}
	request.Status = outcomeOf(record, message)
	return nil
}

// checkRetry rejects a retry that cannot succeed, and returns what delays the next attempt. A conflict has to be
// resolved first: another attempt would end in the same conflict.
func (r *recordRequests) checkRetry(ctx context.Context, record *v1alpha1.SyncStatus) (held string, err error) {
	if record.Status.State == v1alpha1.SyncStateConflicted {
		return "", refused("syncstatuses", record.Name,
			"it is Conflicted: a user must decide about the fields first, with the subresource resolve of the Environment, which tries it again")
	}
	subject := record.Spec.Subject
	found, held, err := types.UID(""), "", error(nil)
	switch subject.Kind {
	case v1alpha1.SubjectAppCatalog:
		found, held, err = r.catalogWaits(ctx, subject.Name)
	case v1alpha1.SubjectEnvironment:
		found, held, err = r.environmentWaits(ctx, subject.Name)
	}
	if apierrors.IsNotFound(err) || err == nil && found != subject.UID {
		return "", refused("syncstatuses", record.Name,
			fmt.Sprintf("the %s %s that it is about is gone, so nothing is left to try", subject.Kind, subject.Name))
	}
	return held, err
}

// catalogWaits returns the uid of a catalog, and what holds back changes of its source.
func (r *recordRequests) catalogWaits(ctx context.Context, name string) (types.UID, string, error) {
	catalog, err := read[*configbutler.AppCatalog](ctx, r.catalogs, name)
	if err != nil {
		return "", "", err
	}
	return catalog.UID, holdReason(catalog, r.clock.Now()), nil
}

// environmentWaits returns the uid of an environment, and what prevents it from being synced. The uid is empty if the
// environment is being deleted.
func (r *recordRequests) environmentWaits(ctx context.Context, name string) (types.UID, string, error) {
	environment, err := read[*configbutler.Environment](ctx, r.environments, name)
	if err != nil || environment.DeletionTimestamp != nil {
		return "", "", err
	}
	for _, condition := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionHeld} {
		if found := apimeta.FindStatusCondition(environment.Status.Conditions, condition); found != nil && found.Status == metav1.ConditionTrue {
			return environment.UID, found.Message, nil
		}
	}
	return environment.UID, "", nil
}

// move changes the state of a record on behalf of the user, unless check rejects it for the stored record. A record
// that is already in the state is unchanged.
func (r *recordRequests) move(
	ctx context.Context, name string, to v1alpha1.SyncState, dryRun []string, check func(*v1alpha1.SyncStatus) error,
) (moved *v1alpha1.SyncStatus, already bool, err error) {
	by, err := requester(ctx)
	if err != nil {
		return nil, false, err
	}
	stored, err := change(ctx, r.records, name, dryRun, func(stored *configbutler.SyncStatus) error {
		record, err := versioned(stored)
		if err != nil {
			return err
		}
		if check != nil {
			if err := check(record); err != nil {
				return err
			}
		}
		moved := record
		if already = record.Status.State == to; !already {
			if moved, err = syncstatus.Move(record, syncstatus.Step{To: to, By: by, At: r.clock.Now()}); err != nil {
				return transitionError(record, err)
			}
		}
		if to == v1alpha1.SyncStateRetrying && record.Spec.Subject.Kind == v1alpha1.SubjectEnvironment {
			moved.Status.RequestedBy = r.retriedBy(ctx)
		}
		return v1alpha1.Convert_v1alpha1_SyncStatus_To_configbutler_SyncStatus(moved, stored, nil)
	})
	if err != nil {
		return nil, false, err
	}
	moved, err = versioned(stored)
	return moved, already, err
}

// retriedBy returns the user of ctx, by whose permissions the environment's run copies Secrets from now on.
func (r *recordRequests) retriedBy(ctx context.Context) *v1alpha1.AutomatedBy {
	who, known := userOf(ctx)
	if !known {
		return nil
	}
	return &v1alpha1.AutomatedBy{
		Username: who.GetName(), UID: types.UID(who.GetUID()), Groups: slices.Clone(who.GetGroups()),
		Time: metav1.NewTime(r.clock.Now()).Rfc3339Copy(),
	}
}

// transitionError adds the allowed transitions to the error of an invalid one.
func transitionError(record *v1alpha1.SyncStatus, err error) error {
	wrong := (*syncstatus.TransitionError)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	return refused("syncstatuses", record.Name, wrong.Error()+"; "+wrong.Hint())
}

// outcomeOf returns the outcome of a request about a record.
func outcomeOf(record *v1alpha1.SyncStatus, message string) configbutler.RequestOutcome {
	return configbutler.RequestOutcome{Accepted: true, Message: message, SyncStatuses: []string{record.Name}}
}
