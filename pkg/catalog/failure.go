// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// stallingError is an error that persists until a user changes something. It is recorded in a SyncStatus, so that it delays neither other
// catalogs nor later batches. All other errors are transient: the update is repeated.
type stallingError struct {
	reason string
	err    error
}

// Error returns a sentence for users.
func (e *stallingError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *stallingError) Unwrap() error { return e.err }

// asStalling converts an error to a stallingError. It returns nil for a transient error.
func asStalling(err error) *stallingError {
	if found := (*stallingError)(nil); errors.As(err, &found) {
		return found
	}
	if found := (*capture.InvalidError)(nil); errors.As(err, &found) {
		return &stallingError{found.Reason, err}
	}
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return &stallingError{v1alpha1.ReasonRecordRefused, err}
	}
	return nil
}

// fail records that an update has failed. Retries of the update follow from its SyncStatus.
func (u *updater) fail(ctx context.Context, t *task, why *stallingError) error {
	step := syncstatus.Step{
		To: v1alpha1.SyncStateFailed, At: u.clock.Now(),
		Failure: &syncstatus.Failure{Reason: why.reason, Message: why.Error()},
	}
	failure := conditions.Reason{Code: why.reason, Message: why.Error()}
	record, err := t.record, error(nil)
	switch {
	case record == nil:
		step.By = t.trigger.actor
		record, err = t.newRecord(step)
	case record.Status.State == v1alpha1.SyncStateRetrying:
		record, err = syncstatus.Move(record, step)
	default:
		// The SyncStatus already reports that the change is applied, so it cannot fail any more. The update is repeated.
		u.blocked.set(t.catalog.UID, failure)
		return why
	}
	if err != nil {
		return fmt.Errorf("record that %w: %w", why, err)
	}
	if err := u.put(ctx, t.record, record); err != nil {
		return err
	}
	countFailure(why)
	changed := t.catalog.DeepCopy()
	removePending(changed, t.trigger)
	return u.finish(ctx, t, failure, changed)
}

// resume resumes a record: it retries a failed one if its backoff has passed, and completes an interrupted one. again is the time until
// the next attempt is due, 0 if none is scheduled.
func (r *reconciler) resume(
	ctx context.Context, catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus,
) (again time.Duration, err error) {
	switch record.Status.State {
	case v1alpha1.SyncStateManualIntervention:
		return 0, nil
	case v1alpha1.SyncStateFailed:
		at, left := syncstatus.NextAttempt(record, r.lister.policy().Retry)
		wait := at.Sub(r.shared.Clock.Now())
		switch {
		case !left, record.Status.Error.Reason == v1alpha1.ReasonRevisionNotKept:
			return 0, r.updater.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateManualIntervention})
		case wait > 0:
			return wait, nil
		}
		if err := r.updater.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateRetrying}); err != nil {
			return 0, err
		}
	}
	now := r.shared.Clock.Now()
	if !applying(record) && (hasPending(catalog, now) || recordTrigger(record).postponed(catalog, record, now)) {
		return 0, nil // Retried after the pending edits and requests, and after the end of the pause.
	}
	source, err := r.reader.readAll(ctx, catalog.Spec.SourceNamespace, followedBy([]*v1alpha1.AppCatalog{catalog}))
	if err != nil {
		return 0, err
	}
	return 0, r.updater.update(ctx, catalog, recordTrigger(record), source)
}

// move moves a SyncStatus to its next state, unless another client has already changed its state.
func (u *updater) move(ctx context.Context, cached *v1alpha1.SyncStatus, step syncstatus.Step) error {
	record, err := u.api.SyncStatuses(cached.Namespace).Get(ctx, cached.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read SyncStatus %s/%s: %w", cached.Namespace, cached.Name, err)
	case record.UID != cached.UID || record.Status.State != cached.Status.State || record.Status.Attempts != cached.Status.Attempts:
		return nil
	}
	step.At = u.clock.Now()
	moved, err := syncstatus.Move(record, step)
	if err != nil {
		return err
	}
	if err := u.put(ctx, record, moved); err != nil && !errors.Is(err, errDeleting) {
		return err
	}
	return nil
}
