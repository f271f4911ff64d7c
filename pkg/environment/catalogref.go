// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// An environment names its catalog. The source of a catalog cannot be changed, but a catalog can be deleted, and another user can create
// one of the same name with another source. So status.catalogUID has the catalog that the environment follows: the first one, or the one
// that existed when a user last requested a sync.

// replacement returns why automatic syncs wait if the catalog is not the one that the environment follows, else the zero Reason. catalog is
// nil if it does not exist.
func replacement(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) conditions.Reason {
	if catalog == nil || e.Status.CatalogUID == "" || e.Status.CatalogUID == catalog.UID {
		return conditions.Reason{}
	}
	return conditions.Reasonf(v1alpha1.ReasonCatalogReplaced,
		"AppCatalog %s was deleted and created again, now with the source %s; request a sync to follow it",
		e.Spec.CatalogRef.NamespacedName(e.Namespace), catalog.Spec.SourceNamespace)
}

// choosesCatalog reports whether the user who last requested the sync of a record did so when the catalog existed.
func choosesCatalog(record *v1alpha1.SyncStatus, catalog *v1alpha1.AppCatalog) bool {
	at := record.Status.DetectedAt
	if by := record.Status.RequestedBy; by != nil {
		at = by.Time
	}
	return !at.Before(&catalog.CreationTimestamp)
}
