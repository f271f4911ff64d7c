// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// writeRecord writes the SyncStatus of a plan. It returns nil if the plan changes nothing and there is no SyncStatus yet.
func (u *updater) writeRecord(ctx context.Context, t *task, next plan) (*v1alpha1.SyncStatus, error) {
	if len(next.changes) == 0 && t.record == nil {
		return nil, nil
	}
	record, err := appliedRecord(t, next, u.clock.Now())
	if err != nil {
		return nil, err
	}
	if err := u.namer.addCommits(ctx, t, next, record); err != nil {
		return nil, err
	}
	if err := u.put(ctx, t.record, record); err != nil {
		return nil, err
	}
	t.written = record
	if t.record == nil && t.trigger.sourceChange {
		recordSeconds.Observe(u.clock.Since(t.trigger.detected).Seconds())
	}
	return record, nil
}

// put writes a SyncStatus. If its state has changed, the state is counted and an Event is published.
func (u *updater) put(ctx context.Context, before, after *v1alpha1.SyncStatus) error {
	if err := u.write(ctx, after); err != nil {
		return err
	}
	u.written.set(after)
	if before == nil || before.Status.State != after.Status.State {
		recordsWritten.WithLabelValues(string(after.Status.State)).Inc()
		u.events.recordWritten(after)
	}
	return nil
}

// write writes a record. It returns errDeleting if the namespace of the record is being deleted.
func (u *updater) write(ctx context.Context, record runtime.Object) error {
	_, err := u.records.Write(ctx, record)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return errDeleting
	}
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	return nil
}

// complete completes an update: it applies change to the status, if it is not nil, and removes the trigger from the pending ones.
func (u *updater) complete(ctx context.Context, t *task, change func(*v1alpha1.AppCatalog)) error {
	changed := t.catalog.DeepCopy()
	if change != nil {
		change(changed)
	}
	if t.compared { // Records that were dismissed before this comparison are resolved: see dismissedUnresolved.
		meta.RemoveStatusCondition(&changed.Status.Conditions, v1alpha1.ConditionStalled)
	}
	removePending(changed, t.trigger)
	return u.finish(ctx, t, u.failure(changed), changed)
}

// finish writes the final status of an update, and deletes what the status no longer refers to.
func (u *updater) finish(ctx context.Context, t *task, failure conditions.Reason, changed *v1alpha1.AppCatalog) error {
	setConditions(changed, u.source(changed.Spec.SourceNamespace), failure, u.clock.Now())
	if err := u.writeStatus(ctx, t.catalog, changed); err != nil {
		return err
	}
	if t.written != nil && changed.Status.Revision > t.catalog.Status.Revision {
		u.events.revisionWritten(changed, t.written)
		measureEdit(t.written, u.clock.Now())
		traceRecord(ctx, changed, t.written)
		klog.FromContext(ctx).Info("Catalog has a new revision", "catalog", klog.KObj(changed), "revision", changed.Status.Revision,
			"workloads", t.written.Status.WorkloadCount, "authors", len(t.written.Status.ChangedBy), "actor", t.written.Status.Actor,
			"syncStatus", t.written.Name)
	}
	if err := u.sweep(ctx, t, changed); err != nil {
		return err
	}
	if t.trigger.generation == 0 && equality.Semantic.DeepEqual(t.catalog.Status.History, changed.Status.History) {
		return nil
	}
	return u.revisions.Prune(ctx, changed)
}

// writeStatus writes the status of a catalog if it has changed. It returns a Conflict if the catalog has changed since it was read.
func (u *updater) writeStatus(ctx context.Context, before, after *v1alpha1.AppCatalog) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	_, err := u.api.AppCatalogs(after.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return errDeleting
	}
	if err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	u.events.statusWritten(before, after)
	return nil
}

// sweep deletes the CatalogWorkloads that a catalog does not offer. Those of a preview are kept: they have the observed source state.
func (u *updater) sweep(ctx context.Context, t *task, catalog *v1alpha1.AppCatalog) error {
	if catalog.Spec.PreviewOnly {
		return nil
	}
	for _, entry := range catalog.Status.Workloads {
		delete(t.held, reference{Kind: entry.Kind, Name: entry.Name})
	}
	for _, workload := range t.held {
		err := u.api.CatalogWorkloads(workload.Namespace).Delete(ctx, workload.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &workload.UID, ResourceVersion: &workload.ResourceVersion},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete a CatalogWorkload that it does not offer: %w", err)
		}
	}
	return nil
}

// report updates the conditions of a catalog. It reads the catalog from the API only if the cached conditions are not up to date.
func (u *updater) report(ctx context.Context, cached *v1alpha1.AppCatalog) error {
	after := cached.DeepCopy()
	setConditions(after, u.source(after.Spec.SourceNamespace), u.failure(after), u.clock.Now())
	if equality.Semantic.DeepEqual(cached.Status, after.Status) {
		return nil
	}
	current, err := u.api.AppCatalogs(cached.Namespace).Get(ctx, cached.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && current.UID != cached.UID:
		return nil
	case err != nil:
		return fmt.Errorf("read AppCatalog %s/%s: %w", cached.Namespace, cached.Name, err)
	}
	after = current.DeepCopy()
	setConditions(after, u.source(after.Spec.SourceNamespace), u.failure(after), u.clock.Now())
	if err := u.writeStatus(ctx, current, after); err != nil && !errors.Is(err, errDeleting) {
		return fmt.Errorf("report the conditions of AppCatalog %s/%s: %w", cached.Namespace, cached.Name, err)
	}
	return nil
}
