// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
)

// loadOpenRecords schedules a check of all open records, because a previous process may have stopped before it.
func (d *Detector) loadOpenRecords(ctx context.Context) error {
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return d.config.Slipstream.Environments(metav1.NamespaceAll).List(ctx, options)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		environment, ok := object.(*v1alpha1.Environment)
		if !ok || environment.Status.LatestDependencySync == "" {
			return nil
		}
		record, err := d.recorder.latest(ctx, environment)
		if errors.Is(err, errDeleted) || err == nil && record == nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, summary := range record.Status.ResourceSummaries {
			d.changedEnvironments.add(summary.Namespace, types.NamespacedName{Namespace: environment.Namespace, Name: environment.Name})
			d.queue.Add(summary.Namespace)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read open dependency records: %w", err)
	}
	return nil
}

// withdraw removes the objects that no longer differ from an environment's open record.
func (k *recorder) withdraw(ctx context.Context, name types.NamespacedName) error {
	defer k.lock(name)()
	err := k.withdrawFrom(ctx, name)
	if err != nil && !errors.Is(err, errDeleted) {
		return fmt.Errorf("environment %s: %w", name, err)
	}
	return nil
}

func (k *recorder) withdrawFrom(ctx context.Context, name types.NamespacedName) error {
	environment, err := k.environment(ctx, name)
	if err != nil {
		return err
	}
	var record *v1alpha1.SyncStatus
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		record, err = k.latest(ctx, environment)
		if err != nil || record == nil || record.Status.State != v1alpha1.SyncStatePending {
			return err
		}
		same, err := k.unchangedOf(ctx, environment, record.Status.ResourceSummaries)
		if err == nil && len(same) > 0 {
			record, err = k.extendRecord(ctx, record, same, nil)
		}
		return err
	})
	if err != nil || record == nil {
		return err
	}
	return k.setLatest(ctx, environment, record)
}

// unchangedOf returns the listed objects whose newest recorded version is the copied one, or that have no copy.
func (k *recorder) unchangedOf(ctx context.Context, environment *v1alpha1.Environment, of []v1alpha1.ResourceSummary) ([]item, error) {
	var same []item
	for _, summary := range of {
		object := index.Object{Type: v1alpha1.DependencyType(summary.Type), Namespace: summary.Namespace, Name: summary.Name}
		dependency, err := k.dependency(ctx, environment, object)
		if err != nil {
			return nil, err
		}
		copied := index.Copy{}
		if dependency != nil {
			copied = index.CopyOf(dependency)
		}
		if copied.Known() == copied.Copied() {
			same = append(same, item{finding: finding{of: object, version: copied.Copied()}, copied: copied})
		}
	}
	return same, nil
}
