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

// Record has the EnvironmentDependencies say what an environment has, and the index after them. Runs end with it; while one of the
// environment goes on, nobody else does it.
func (r *Runner) Record(ctx context.Context, of *v1alpha1.Environment, records []v1alpha1.EnvironmentDependencyRecord) error {
	wanted := map[string]*v1alpha1.EnvironmentDependency{}
	for _, record := range records {
		dependency := dependencyOf(of, record)
		wanted[dependency.Name] = dependency
	}
	if err := r.write(ctx, wanted); err != nil {
		return err
	}
	if err := r.sweep(ctx, of, wanted); err != nil {
		return err
	}
	r.Index.Set(types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, records)
	return nil
}

func dependencyOf(of *v1alpha1.Environment, record v1alpha1.EnvironmentDependencyRecord) *v1alpha1.EnvironmentDependency {
	owner := metav1.NewControllerRef(of, v1alpha1.SchemeGroupVersion.WithKind(string(v1alpha1.SubjectEnvironment)))
	return &v1alpha1.EnvironmentDependency{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       of.Namespace,
			Name:            v1alpha1.EnvironmentDependencyName(of.Name, record.Type, record.Target.Name),
			Labels:          map[string]string{v1alpha1.LabelEnvironment: of.Name},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Status: record,
	}
}

func (r *Runner) write(ctx context.Context, wanted map[string]*v1alpha1.EnvironmentDependency) error {
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
func (r *Runner) sweep(ctx context.Context, of *v1alpha1.Environment, wanted map[string]*v1alpha1.EnvironmentDependency) error {
	client := r.Dependencies.EnvironmentDependencies(of.Namespace)
	there, err := client.List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelEnvironment: of.Name}).String(),
	})
	if err != nil {
		return fmt.Errorf("list EnvironmentDependencies in %s: %w", of.Namespace, err)
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
