// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// catalog reads the catalog of the environment.
func (r *stateReading) catalog(ctx context.Context) (*v1alpha1.AppCatalog, error) {
	name := r.state.Environment.Spec.CatalogRef.NamespacedName(r.state.Environment.Namespace)
	return shared(ctx, &r.reader.shared, r.since, "catalog "+name.String(), func(ctx context.Context) (*v1alpha1.AppCatalog, error) {
		catalog, err := r.reader.Slipstream.AppCatalogs(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read AppCatalog %s: %w", name, err)
		}
		return catalog, nil
	})
}

// records reads the dependency records of the environment, and the other environments with the same target. Those are always in the
// same namespace.
func (r *stateReading) records(ctx context.Context) error {
	namespace := r.state.Environment.Namespace
	dependencies, err := r.reader.Slipstream.EnvironmentDependencies(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelEnvironment: r.state.Environment.Name}).String(),
	})
	if err != nil {
		return fmt.Errorf("list EnvironmentDependencies in %s: %w", namespace, err)
	}
	for i := range dependencies.Items {
		if metav1.IsControlledBy(&dependencies.Items[i], r.state.Environment) {
			r.state.Index = append(r.state.Index, dependencies.Items[i].Status)
		}
	}
	environments, err := r.environments(ctx, namespace)
	if err != nil {
		return err
	}
	for i := range environments {
		other := &environments[i]
		if other.UID != r.state.Environment.UID && other.Spec.TargetNamespace == r.state.Environment.Spec.TargetNamespace {
			r.state.Related = append(r.state.Related, other)
		}
	}
	return nil
}

// environments reads the environments of a namespace.
func (r *stateReading) environments(ctx context.Context, namespace string) ([]v1alpha1.Environment, error) {
	return shared(ctx, &r.reader.shared, r.since, "environments "+namespace, func(ctx context.Context) ([]v1alpha1.Environment, error) {
		list, err := r.reader.Slipstream.Environments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list Environments in %s: %w", namespace, err)
		}
		for i := range list.Items {
			list.Items[i].Status = v1alpha1.EnvironmentStatus{} // Plans of other environments do not depend on it.
			list.Items[i].ManagedFields = nil
		}
		return list.Items, nil
	})
}
