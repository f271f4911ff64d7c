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
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// problem is why an occasion cannot be carried out until somebody changes something. Any other error passes, and is met by
// beginning the occasion again; a problem is recorded, so that neither other catalogs nor later batches wait for it.
type problem struct {
	reason string
	err    error
}

// Error is a sentence for people.
func (p *problem) Error() string { return p.err.Error() }

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.err }

// problemIn returns the problem that an error stands for, nil if it passes.
func problemIn(err error) *problem {
	if found := (*problem)(nil); errors.As(err, &found) {
		return found
	}
	if found := (*capture.InvalidError)(nil); errors.As(err, &found) {
		return &problem{found.Reason, err}
	}
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return &problem{v1alpha1.ReasonRecordRefused, err}
	}
	return nil
}

// fail records that an occasion could not be carried out. Its record says from then on what becomes of it.
func (k *keeper) fail(ctx context.Context, t *task, why *problem) error {
	step := syncstatus.Step{
		To: v1alpha1.SyncStateFailed, At: k.clock.Now(),
		Failure: &syncstatus.Failure{Reason: why.reason, Message: why.Error()},
	}
	record, err := t.record, error(nil)
	switch {
	case record == nil:
		step.By = t.actor
		record, err = begun(t.catalog, t.occasion, t.name, step)
	case record.Status.State == v1alpha1.SyncStateRetrying:
		record, err = syncstatus.Move(record, step)
	default:
		// It has been written that it is applied, and the catalog could not follow: only trying again is left.
		k.obstacles.set(t.catalog.UID, verdict{why.reason, why.Error()})
		return why
	}
	if err != nil {
		return fmt.Errorf("record that %w: %w", why, err)
	}
	if err := k.put(ctx, t.record, record); err != nil {
		return err
	}
	countFailure(why)
	changed := t.catalog.DeepCopy()
	answer(changed, t.occasion)
	return k.end(ctx, t, verdict{why.reason, why.Error()}, changed)
}

// resume goes on with a record as far as its time has come, and says when it comes if it has not; 0 if there is none.
func (c *catalogs) resume(
	ctx context.Context, catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus,
) (again time.Duration, err error) {
	switch record.Status.State {
	case v1alpha1.SyncStateManualIntervention:
		return 0, nil
	case v1alpha1.SyncStateFailed:
		at, left := syncstatus.NextAttempt(record, c.policy().Retry)
		wait := at.Sub(c.shared.Clock.Now())
		switch {
		case !left, record.Status.Error.Reason == v1alpha1.ReasonRevisionNotKept:
			return 0, c.keeper.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateManualIntervention})
		case wait > 0:
			return wait, nil
		}
		if err := c.keeper.move(ctx, record, syncstatus.Step{To: v1alpha1.SyncStateRetrying}); err != nil {
			return 0, err
		}
	}
	now := c.shared.Clock.Now()
	if !begunToApply(record) && (asked(catalog, now) || resumed(record).waits(catalog, record, now)) {
		return 0, nil // After what has been asked for since; after what keeps the catalog as it is.
	}
	seen, err := c.reader.everything(ctx, catalog.Spec.SourceNamespace, wantedBy([]*v1alpha1.AppCatalog{catalog}))
	if err != nil {
		return 0, err
	}
	return 0, c.keeper.carryOut(ctx, catalog, resumed(record), seen)
}

// move takes a record a step further, unless somebody was faster.
func (k *keeper) move(ctx context.Context, of *v1alpha1.SyncStatus, step syncstatus.Step) error {
	record, err := k.api.SyncStatuses(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read SyncStatus %s/%s: %w", of.Namespace, of.Name, err)
	case record.UID != of.UID || record.Status.State != of.Status.State || record.Status.Attempts != of.Status.Attempts:
		return nil
	}
	step.At = k.clock.Now()
	moved, err := syncstatus.Move(record, step)
	if err != nil {
		return err
	}
	if err := k.put(ctx, record, moved); err != nil && !errors.Is(err, errGoing) {
		return err
	}
	return nil
}
