// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// record has the EnvironmentDependencies say what the environment has, and the index after them.
func (r *running) record(ctx context.Context, records []v1alpha1.EnvironmentDependencyRecord) error {
	wanted := map[string]*v1alpha1.EnvironmentDependency{}
	for _, record := range records {
		of := r.dependency(record)
		wanted[of.Name] = of
	}
	if err := r.write(ctx, wanted); err != nil {
		return err
	}
	if err := r.sweep(ctx, wanted); err != nil {
		return err
	}
	r.Index.Set(types.NamespacedName{Namespace: r.Environment.Namespace, Name: r.Environment.Name}, records)
	return nil
}

func (r *running) dependency(record v1alpha1.EnvironmentDependencyRecord) *v1alpha1.EnvironmentDependency {
	owner := metav1.NewControllerRef(r.Environment, v1alpha1.SchemeGroupVersion.WithKind(string(v1alpha1.SubjectEnvironment)))
	return &v1alpha1.EnvironmentDependency{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       r.Environment.Namespace,
			Name:            v1alpha1.EnvironmentDependencyName(r.Environment.Name, record.Type, record.Target.Name),
			Labels:          map[string]string{v1alpha1.LabelEnvironment: r.Environment.Name},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Status: record,
	}
}

func (r *running) write(ctx context.Context, wanted map[string]*v1alpha1.EnvironmentDependency) error {
	group, begin := errgroup.WithContext(ctx)
	group.SetLimit(max(r.Applier.Concurrency, 1))
	for _, dependency := range wanted {
		group.Go(func() error {
			if err := r.Records.Write(begin, dependency); err != nil {
				return fmt.Errorf("write EnvironmentDependency %s: %w", dependency.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// sweep deletes the records of what the environment does not refer to any more.
func (r *running) sweep(ctx context.Context, wanted map[string]*v1alpha1.EnvironmentDependency) error {
	client := r.Dependencies.EnvironmentDependencies(r.Environment.Namespace)
	there, err := client.List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelEnvironment: r.Environment.Name}).String(),
	})
	if err != nil {
		return fmt.Errorf("list EnvironmentDependencies in %s: %w", r.Environment.Namespace, err)
	}
	for _, record := range there.Items {
		if wanted[record.Name] != nil {
			continue
		}
		err := client.Delete(ctx, record.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &record.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete EnvironmentDependency %s: %w", record.Name, err)
		}
	}
	return nil
}
