// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// freshFor is how long a record is not rewritten if only its lastDiscoveredAt would change.
const freshFor = time.Hour

// Record writes the EnvironmentDependencies of an environment, deletes those that no longer apply, and then updates the index. Each run
// ends with it; it must not be called while a run of the environment is in progress.
func (s *Syncer) Record(ctx context.Context, of *v1alpha1.Environment, records []v1alpha1.EnvironmentDependencyRecord) error {
	there, err := s.recorded(ctx, of)
	if err != nil {
		return err
	}
	wanted := map[string]*v1alpha1.EnvironmentDependency{}
	for _, record := range records {
		dependency := dependencyOf(of, record)
		wanted[dependency.Name] = dependency
	}
	if err := s.write(ctx, wanted, there); err != nil {
		return err
	}
	if err := s.sweep(ctx, of.Namespace, wanted, there); err != nil {
		return err
	}
	s.Index.Set(types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, records)
	return nil
}

// recorded returns the existing records by name.
func (s *Syncer) recorded(ctx context.Context, of *v1alpha1.Environment) (map[string]*v1alpha1.EnvironmentDependency, error) {
	list, err := s.Dependencies.EnvironmentDependencies(of.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelEnvironment: of.Name}).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list EnvironmentDependencies in %s: %w", of.Namespace, err)
	}
	there := make(map[string]*v1alpha1.EnvironmentDependency, len(list.Items))
	for i := range list.Items {
		there[list.Items[i].Name] = &list.Items[i]
	}
	return there, nil
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

func (s *Syncer) write(ctx context.Context, wanted, there map[string]*v1alpha1.EnvironmentDependency) error {
	group, begin := errgroup.WithContext(ctx)
	group.SetLimit(max(s.Applier.Concurrency, 1))
	for name, dependency := range wanted {
		if isFresh(there[name], dependency) {
			continue
		}
		group.Go(func() error {
			if _, err := s.Records.Write(begin, dependency); err != nil {
				return fmt.Errorf("write EnvironmentDependency %s: %w", dependency.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// isFresh reports whether an existing record matches the wanted one, apart from a recent lastDiscoveredAt.
func isFresh(there, wanted *v1alpha1.EnvironmentDependency) bool {
	if there == nil || !equality.Semantic.DeepEqual(there.OwnerReferences, wanted.OwnerReferences) {
		return false
	}
	was, is := there.Status, wanted.Status
	if was.LastDiscoveredAt == nil || is.LastDiscoveredAt == nil || is.LastDiscoveredAt.Sub(was.LastDiscoveredAt.Time) >= freshFor {
		return false
	}
	was.LastDiscoveredAt = is.LastDiscoveredAt
	return equality.Semantic.DeepEqual(was, is)
}

// sweep deletes the records of objects that the environment no longer refers to.
func (s *Syncer) sweep(ctx context.Context, namespace string, wanted, there map[string]*v1alpha1.EnvironmentDependency) error {
	for name, record := range there {
		if wanted[name] != nil {
			continue
		}
		err := s.Dependencies.EnvironmentDependencies(namespace).Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &record.UID},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete EnvironmentDependency %s: %w", name, err)
		}
	}
	return nil
}
