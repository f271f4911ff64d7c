// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
)

// read returns the state of an environment, nil if it does not exist. The environment and its records are read from the API, because a
// cache may be older than the last write.
func (c *environments) read(ctx context.Context, name types.NamespacedName) (*state, error) {
	found, err := c.api.Environments(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	s := &state{
		environment: found, policy: c.settings(), now: c.shared.Clock.Now(), syncing: c.runs.has(name), catalog: c.catalogOf(found),
	}
	if s.records, err = c.readRecords(ctx, found); err != nil {
		return nil, err
	}
	s.obstacle = c.findObstacle(s.environment, s.catalog)
	return s, nil
}

// catalogOf returns the catalog of an environment, nil if it does not exist.
func (c *environments) catalogOf(e *v1alpha1.Environment) *v1alpha1.AppCatalog {
	ref := e.Spec.CatalogRef
	found, err := c.informers.Configbutler().V1alpha1().AppCatalogs().Lister().AppCatalogs(cmp.Or(ref.Namespace, e.Namespace)).Get(ref.Name)
	if err != nil {
		return nil // NotFound is the only error of a cache.
	}
	return found
}

// readRecords reads the records that have not ended in the cache, and those that the status names.
func (c *environments) readRecords(ctx context.Context, e *v1alpha1.Environment) ([]*v1alpha1.SyncStatus, error) {
	names := sets.New(e.Status.ActiveSyncs...)
	if latest := e.Status.LatestDependencySync; latest != "" {
		names.Insert(latest)
	}
	for _, record := range c.openOf(e) {
		names.Insert(record.Name)
	}
	var records []*v1alpha1.SyncStatus
	for name := range names {
		record, err := c.api.SyncStatuses(e.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read SyncStatus %s: %w", name, err)
		}
		if record.Spec.Subject.UID == e.UID {
			records = append(records, record)
		}
	}
	slices.SortFunc(records, compareAges)
	return records, nil
}

// settings returns the SyncPolicy with its defaults.
func (c *environments) settings() *v1alpha1.SyncPolicySpec {
	return syncpolicy.Of(c.informers.Configbutler().V1alpha1().SyncPolicies().Lister())
}

// isThere reports whether an environment still exists.
func (c *environments) isThere(ctx context.Context, e copies.Environment) (bool, error) {
	found, err := c.api.Environments(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && found.UID == e.UID, err
}
