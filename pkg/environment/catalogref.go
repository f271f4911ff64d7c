// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// An environment names its catalog. The source of a catalog cannot be changed, but a catalog can be deleted, and another user can create
// one of the same name with another source. So status.catalogUID has the catalog that the environment follows: the first one, or the one
// that existed when a user last requested a sync of everything with the newest revision.

// replacement returns why automatic syncs wait if the catalog is not the one that the environment follows, else the zero Reason. catalog is
// nil if it does not exist.
func replacement(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) conditions.Reason {
	if catalog == nil || e.Status.CatalogUID == "" || e.Status.CatalogUID == catalog.UID {
		return conditions.Reason{}
	}
	return conditions.Reasonf(v1alpha1.ReasonCatalogReplaced,
		"AppCatalog %s was deleted and created again, now with the source %s; request a sync of everything to follow it",
		e.Spec.CatalogRef.NamespacedName(e.Namespace), catalog.Spec.SourceNamespace)
}

// takesNewest reports whether a user has requested the sync of a record with the newest revision of the catalog. A pinned revision is one
// of the catalog that the environment followed then, like the rest of a sync that was interrupted.
func takesNewest(e *v1alpha1.Environment, record *v1alpha1.SyncStatus) bool {
	return !isAutomatic(record) && record.Status.State != v1alpha1.SyncStateInProgress && revisionOf(e, record) == 0
}

// isRequestedFrom reports whether the user who last requested the sync of a record did so after the catalog was created. Times have a
// resolution of a second.
func isRequestedFrom(catalog *v1alpha1.AppCatalog, record *v1alpha1.SyncStatus) bool {
	at := record.Status.DetectedAt
	if by := record.Status.RequestedBy; by != nil {
		at = by.Time
	}
	return catalog.CreationTimestamp.Before(&at)
}

// chooseCatalog returns the UID of the catalog from which the sync of a record may take. A requested sync of everything makes the environment
// follow it.
func (s *state) chooseCatalog(record *v1alpha1.SyncStatus) types.UID {
	if !takesNewest(s.environment, record) {
		return s.environment.Status.CatalogUID
	}
	if record.Spec.Type == v1alpha1.SyncTypeEnvironment && actionOf(record) != v1alpha1.SyncActionCluster && !s.requests().isPartial(record) {
		s.environment.Status.CatalogUID = s.catalog.UID
	}
	return s.catalog.UID
}
