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

// read finds out in which situation an environment is, nil if there is none of the name. The environment and its records are as
// they are now: a cache may be older than what was written last.
func (c *environments) read(ctx context.Context, name types.NamespacedName) (*situation, error) {
	found, err := c.api.Environments(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	s := &situation{
		environment: found, policy: c.settings(), now: c.shared.Clock.Now(), busy: c.runs.has(name), catalog: c.catalogOf(found),
	}
	if s.records, err = c.readRecords(ctx, found); err != nil {
		return nil, err
	}
	s.obstacle = c.inTheWay(s)
	return s, nil
}

// catalogOf is the catalog of an environment, nil if there is none.
func (c *environments) catalogOf(e *v1alpha1.Environment) *v1alpha1.AppCatalog {
	ref := e.Spec.CatalogRef
	found, err := c.informers.Configbutler().V1alpha1().AppCatalogs().Lister().AppCatalogs(cmp.Or(ref.Namespace, e.Namespace)).Get(ref.Name)
	if err != nil {
		return nil // A cache has no other error.
	}
	return found
}

// readRecords reads those that the cache has not seen end, and those that the status tells of.
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

// settings are the settings that all environments share, with their defaults.
func (c *environments) settings() *v1alpha1.SyncPolicySpec {
	return syncpolicy.Of(c.informers.Configbutler().V1alpha1().SyncPolicies().Lister())
}

// isThere says whether there still is an environment.
func (c *environments) isThere(ctx context.Context, e copies.Environment) (bool, error) {
	found, err := c.api.Environments(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && found.UID == e.UID, err
}
