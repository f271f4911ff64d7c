// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// reader reads what a reconcile decides from.
type reader struct {
	api       typed.ConfigbutlerV1alpha1Interface
	caches    *caches
	obstacles *obstacles
	runs      *runs
	clock     clock.PassiveClock
}

// read returns the state of an environment, nil if it does not exist. The environment and its records are read from the API, because a
// cache may be older than the last write.
func (r *reader) read(ctx context.Context, name types.NamespacedName) (*state, error) {
	found, err := r.api.Environments(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	s := &state{
		environment: found, policy: r.caches.policy(), now: r.clock.Now(), syncing: r.runs.has(name), catalog: r.caches.catalogOf(found),
	}
	if s.records, err = r.readRecords(ctx, found); err != nil {
		return nil, err
	}
	s.obstacle = r.obstacles.find(s.environment, s.catalog)
	return s, nil
}

// readRecords reads the records that have not ended in the cache, and those that the status names.
func (r *reader) readRecords(ctx context.Context, e *v1alpha1.Environment) ([]*v1alpha1.SyncStatus, error) {
	names := sets.New(e.Status.ActiveSyncs...)
	if latest := e.Status.LatestDependencySync; latest != "" {
		names.Insert(latest)
	}
	for _, record := range r.caches.openOf(e) {
		names.Insert(record.Name)
	}
	var records []*v1alpha1.SyncStatus
	for name := range names {
		record, err := r.api.SyncStatuses(e.Namespace).Get(ctx, name, metav1.GetOptions{})
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

// isThere reports whether an environment still exists.
func (r *reader) isThere(ctx context.Context, e copies.Environment) (bool, error) {
	found, err := r.api.Environments(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && found.UID == e.UID, err
}
