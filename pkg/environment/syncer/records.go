// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// catalog reads the one that the environment is built from.
func (r *reading) catalog(ctx context.Context) (*v1alpha1.AppCatalog, error) {
	ref := r.Environment.Spec.CatalogRef
	namespace := cmp.Or(ref.Namespace, r.Environment.Namespace)
	catalog, err := r.Slipstream.AppCatalogs(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read AppCatalog %s/%s: %w", namespace, ref.Name, err)
	}
	return catalog, nil
}

// records reads what the environment's records say, and which other environments live in its target. Those are all in its
// namespace.
func (r *reading) records(ctx context.Context) error {
	namespace := r.Environment.Namespace
	dependencies, err := r.Slipstream.EnvironmentDependencies(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelEnvironment: r.Environment.Name}).String(),
	})
	if err != nil {
		return fmt.Errorf("list EnvironmentDependencies in %s: %w", namespace, err)
	}
	for i := range dependencies.Items {
		if metav1.IsControlledBy(&dependencies.Items[i], r.Environment) {
			r.Index = append(r.Index, dependencies.Items[i].Status)
		}
	}
	environments, err := r.Slipstream.Environments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list Environments in %s: %w", namespace, err)
	}
	for i := range environments.Items {
		other := &environments.Items[i]
		if other.UID != r.Environment.UID && other.Spec.TargetNamespace == r.Environment.Spec.TargetNamespace {
			r.Related = append(r.Related, other)
		}
	}
	return nil
}
