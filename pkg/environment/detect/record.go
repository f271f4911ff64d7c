// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// updateRecord adds changes to the open record of an environment, or creates one, and sets latestDependencySync. It retries
// if the record is modified concurrently.
func (k *recorder) updateRecord(ctx context.Context, environment *v1alpha1.Environment, batch pending.Batch, items []item) error {
	by := k.changedBy(batch, items)
	var record *v1alpha1.SyncStatus
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		record, err = k.latest(ctx, environment)
		if err == nil && !isOpen(record) && len(differing(items)) > 0 {
			record, err = k.newRecord(ctx, environment, batch)
		}
		if err == nil && isOpen(record) {
			record, err = k.extendRecord(ctx, record, items, by)
		}
		return err
	})
	if err != nil || record == nil {
		return err
	}
	return k.setLatest(ctx, environment, record)
}

// latest returns the record that the environment's status refers to, nil if there is none.
func (k *recorder) latest(ctx context.Context, environment *v1alpha1.Environment) (*v1alpha1.SyncStatus, error) {
	now, err := k.refresh(ctx, environment)
	if err != nil || now.Status.LatestDependencySync == "" {
		return nil, err
	}
	record, err := k.api.SyncStatuses(now.Namespace).Get(ctx, now.Status.LatestDependencySync, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && record.Spec.Subject.UID != environment.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read SyncStatus %s: %w", now.Status.LatestDependencySync, err)
	}
	return record, nil
}

// newRecord returns the record of a batch: the one that an interrupted attempt has created, or a new one. If the record is
// no longer open because a run has started, the batch gets another one.
func (k *recorder) newRecord(ctx context.Context, environment *v1alpha1.Environment, batch pending.Batch) (*v1alpha1.SyncStatus, error) {
	for number := 1; ; number++ {
		spec := specOf(environment, batch, number)
		found, name, err := syncstatus.Find(spec, func(name string) (*v1alpha1.SyncStatus, error) {
			return k.api.SyncStatuses(environment.Namespace).Get(ctx, name, metav1.GetOptions{})
		})
		switch {
		case err != nil:
			return nil, err
		case found == nil:
			record, err := syncstatus.New(syncstatus.Creation{
				Namespace: environment.Namespace, Spec: spec, DetectedAt: batch.FirstSeen,
				First: syncstatus.Step{To: v1alpha1.SyncStatePending, At: k.clock.Now()},
			})
			if err != nil {
				return nil, err
			}
			record.Name = name
			return record, nil
		case isOpen(found):
			return found, nil
		}
	}
}

// specOf returns the spec of the batch's record. The number distinguishes several records of one environment, which are
// rare.
func specOf(environment *v1alpha1.Environment, batch pending.Batch, number int) v1alpha1.SyncStatusSpec {
	id := batch.ID
	if number > 1 {
		id += fmt.Sprint(".", number)
	}
	return v1alpha1.SyncStatusSpec{
		Type: v1alpha1.SyncTypeDependency, Batch: id,
		Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: environment.Name, UID: environment.UID},
	}
}

// extendRecord adds items to a record and writes it if that changes it.
func (k *recorder) extendRecord(
	ctx context.Context, record *v1alpha1.SyncStatus, items []item, by []v1alpha1.SourceAuthor,
) (*v1alpha1.SyncStatus, error) {
	next, err := extend(record, items, by, k.clock.Now())
	if err != nil || equality.Semantic.DeepEqual(record, next) {
		return record, err
	}
	if err := k.write(ctx, next); err != nil {
		return nil, err
	}
	switch {
	case record.ResourceVersion == "":
		recordsWritten.WithLabelValues(begun).Inc()
		recordSeconds.Observe(k.clock.Since(next.Status.DetectedAt.Time).Seconds())
	case next.Status.State == v1alpha1.SyncStateSuperseded:
		recordsWritten.WithLabelValues(superseded).Inc()
	default:
		recordsWritten.WithLabelValues(changed).Inc()
	}
	return next, nil
}

// setLatest sets latestDependencySync to an open record, and clears it if the record has ended.
func (k *recorder) setLatest(ctx context.Context, environment *v1alpha1.Environment, record *v1alpha1.SyncStatus) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := k.refresh(ctx, environment)
		if err != nil {
			return err
		}
		latest := &now.Status.LatestDependencySync
		switch named := *latest == record.Name; {
		case isOpen(record) && !named:
			*latest = record.Name
		case syncstatus.Ended(record) && named:
			*latest = ""
		default:
			return nil
		}
		_, err = k.api.Environments(now.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			return errDeleted
		}
		if err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		return nil
	})
}
