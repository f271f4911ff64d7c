// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"fmt"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Rediscover computes again what the workloads of an environment reference, and updates its EnvironmentDependencies and the
// index. Nothing is copied: new dependencies are recorded as added. It does nothing while the environment holds no
// revision. No run may be in progress in the environment.
func (d *Detector) Rediscover(ctx context.Context, name types.NamespacedName) error {
	defer d.recorder.lock(name)()
	environment, err := d.config.Slipstream.Environments(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("rediscover what environment %s depends on: %w", name, err)
	}
	if environment.Status.AppliedRevision == 0 {
		return nil
	}
	result, err := d.config.Runner.Run(ctx, syncer.Request{
		Environment: environment, Action: v1alpha1.SyncActionCatalog, Revision: environment.Status.AppliedRevision, Mode: syncer.ModePlan,
	})
	if err != nil {
		return fmt.Errorf("rediscover what environment %s depends on: %w", name, err)
	}
	before, err := d.recordsOf(ctx, environment)
	if err != nil {
		return fmt.Errorf("rediscover what environment %s depends on: %w", name, err)
	}
	return d.config.Runner.Record(ctx, environment, mergeRecords(result.Plan.Index, before))
}

// recordsOf returns the EnvironmentDependencies of an environment by name.
func (d *Detector) recordsOf(
	ctx context.Context, environment *v1alpha1.Environment,
) (map[string]v1alpha1.EnvironmentDependencyRecord, error) {
	list, err := d.config.Slipstream.EnvironmentDependencies(environment.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelEnvironment: environment.Name}).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list EnvironmentDependencies in %s: %w", environment.Namespace, err)
	}
	records := map[string]v1alpha1.EnvironmentDependencyRecord{}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], environment) {
			records[list.Items[i].Name] = list.Items[i].Status
		}
	}
	return records, nil
}

// mergeRecords returns records with the referrers that a plan has found and the versions recorded before.
func mergeRecords(
	found []v1alpha1.EnvironmentDependencyRecord, before map[string]v1alpha1.EnvironmentDependencyRecord,
) []v1alpha1.EnvironmentDependencyRecord {
	records := make([]v1alpha1.EnvironmentDependencyRecord, len(found))
	for i, record := range found {
		record.Hash = "" // Nothing has been copied yet.
		if was, known := before[v1alpha1.EnvironmentDependencyName(record.Environment, record.Type, record.Target.Name)]; known {
			record.Hash, record.SeenHash, record.Keys, record.Missing = was.Hash, was.SeenHash, was.Keys, was.Missing
		}
		records[i] = record
	}
	return records
}
