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

// recall has the open records of all environments settled: an earlier process may have died before.
func (d *Detector) recall(ctx context.Context) error {
	list := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return d.config.Slipstream.Environments(metav1.NamespaceAll).List(ctx, options)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		environment, ok := object.(*v1alpha1.Environment)
		if !ok || environment.Status.LatestDependencySync == "" {
			return nil
		}
		record, err := d.keeper.latest(ctx, environment)
		if errors.Is(err, errGone) || err == nil && record == nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, summary := range record.Status.ResourceSummaries {
			d.touched.add(summary.Namespace, types.NamespacedName{Namespace: environment.Namespace, Name: environment.Name})
			d.queue.Add(summary.Namespace)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what environments have been told of: %w", err)
	}
	return nil
}

// settle takes out of an environment's open record what does not differ from the copies any more.
func (k *keeper) settle(ctx context.Context, name types.NamespacedName) error {
	defer k.lock(name)()
	err := k.settled(ctx, name)
	if err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("environment %s: %w", name, err)
	}
	return nil
}

func (k *keeper) settled(ctx context.Context, name types.NamespacedName) error {
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
		same, err := k.same(ctx, environment, record.Status.ResourceSummaries)
		if err == nil && len(same) > 0 {
			record, err = k.put(ctx, record, same, nil)
		}
		return err
	})
	if err != nil || record == nil {
		return err
	}
	return k.point(ctx, environment, record)
}

// same are those of some objects of which the newest version that was told of is the one that was copied, and those that the
// environment has no copy of.
func (k *keeper) same(ctx context.Context, environment *v1alpha1.Environment, of []v1alpha1.ResourceSummary) ([]item, error) {
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
