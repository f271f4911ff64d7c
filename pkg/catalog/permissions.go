// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// checkPermissions makes those catalogs ready whose editors are still allowed to read what they show. The others are not updated, and
// their conditions report it. A catalog whose check fails waits. The namespace is enqueued for when the results expire, because
// a lost permission causes no event.
func (r *reconciler) checkPermissions(ctx context.Context, s *state) {
	for _, catalog := range s.catalogs {
		lost, err := r.lostPermission(ctx, catalog)
		if err != nil {
			s.add(fmt.Errorf("check the permissions of the editor of AppCatalog %s/%s: %w", catalog.Namespace, catalog.Name, err))
			continue
		}
		r.permissionLost.set(catalog.UID, lost)
		switch {
		case !lost.IsZero():
			r.queue.AddAfter(s.namespace, access.DeniedTTL)
		case reportsPermissionLost(catalog):
			// The catalog becomes ready once its status no longer reports this. The comparison finds the changes that it has missed.
			r.intake.Resync(s.namespace, pending.Requested)
		default:
			r.queue.AddAfter(s.namespace, access.AllowedTTL)
			s.ready = append(s.ready, catalog)
		}
	}
}

// lostPermission returns why a catalog must not be updated. It returns the zero value if it may be.
func (r *reconciler) lostPermission(ctx context.Context, catalog *v1alpha1.AppCatalog) (conditions.Reason, error) {
	editor, known := access.Editing(catalog)
	if !known {
		return conditions.Reason{}, nil
	}
	lost, err := r.shared.Access.Check(ctx, editor, access.OfCatalog(catalog))
	if err != nil || lost == "" {
		return conditions.Reason{}, err
	}
	return conditions.Reason{Code: v1alpha1.ReasonPermissionLost, Message: lost}, nil
}

// reportsPermissionLost reports whether the status of a catalog reports a lost permission.
func reportsPermissionLost(catalog *v1alpha1.AppCatalog) bool {
	ready := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonPermissionLost
}

// countPermitted returns the number of catalogs of a source namespace without a known lost permission.
func (r *reconciler) countPermitted(namespace string) int {
	count := 0
	for _, catalog := range r.lister.catalogs(namespace) {
		if r.permissionLost.get(catalog.UID).IsZero() {
			count++
		}
	}
	return count
}
