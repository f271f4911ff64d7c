// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogSync requests that the source of an AppCatalog is read again and compared with the catalog, and returns the
// result. It is created at the subresource sync of the catalog and is not stored.
type CatalogSync struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Rollback requests the content of an earlier revision, and returns the result. It is created at the subresource rollback
// of an AppCatalog or Environment and is not stored.
type Rollback struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   RollbackSpec
	Status RequestOutcome
}

// RollbackSpec is the revision to return to.
type RollbackSpec struct {
	Revision int64
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Dismissal dismisses a prompt or a notice, and returns the result. Nothing is undone and nothing is synced. It is
// created at the subresource dismiss of a SyncStatus or Environment and is not stored.
type Dismissal struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Retry requests that failed work is retried, and returns the result. It is created at the subresource retry of a
// SyncStatus and is not stored.
type Retry struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// RequestOutcome is the result of a request.
type RequestOutcome struct {
	Accepted     bool
	ID           string
	Message      string
	SyncStatuses []string
}
