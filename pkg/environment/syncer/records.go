// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
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

// ErrCatalogReplaced is returned if the catalog is not the one that the environment follows.
var ErrCatalogReplaced = errors.New("the AppCatalog was deleted and created again")

// checkCatalog checks that what a sync writes comes from the catalog of the request. A snapshot takes nothing from it.
func (r *stateReading) checkCatalog(catalog *v1alpha1.AppCatalog) error {
	if r.request.Mode == ModeSync && r.state.Snapshot == nil && catalog.UID != r.request.Catalog {
		return fmt.Errorf("AppCatalog %s/%s: %w", catalog.Namespace, catalog.Name, ErrCatalogReplaced)
	}
	return nil
}

// records reads the dependency records of the environment, and finds the other environments with the same target. Those are always in
// the same namespace.
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
	r.state.Related, err = r.related(ctx)
	return err
}

// related returns the other environments with the same target.
func (r *stateReading) related(ctx context.Context) ([]*v1alpha1.Environment, error) {
	environment := r.state.Environment
	if r.request.Related != nil {
		return r.request.Related(environment), nil
	}
	list, err := r.reader.Slipstream.Environments(environment.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list Environments in %s: %w", environment.Namespace, err)
	}
	var related []*v1alpha1.Environment
	for i := range list.Items {
		if other := &list.Items[i]; other.UID != environment.UID && other.Spec.TargetNamespace == environment.Spec.TargetNamespace {
			related = append(related, other)
		}
	}
	return related, nil
}
