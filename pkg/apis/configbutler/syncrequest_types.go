// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogSync asks for the source of an AppCatalog to be read anew and compared with it now, and is the answer. It is
// created at the subresource sync of the catalog and is not stored.
type CatalogSync struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Rollback asks for what was there at an earlier revision, and is the answer. It is created at the subresource rollback of
// an AppCatalog or Environment and is not stored.
type Rollback struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   RollbackSpec
	Status RequestOutcome
}

// RollbackSpec says how far to go back.
type RollbackSpec struct {
	Revision int64
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Dismissal puts a prompt or a notice aside, and is the answer. Nothing is undone and nothing is synced. It is created at
// the subresource dismiss of a SyncStatus or Environment and is not stored.
type Dismissal struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Retry asks for what failed to be tried again, and is the answer. It is created at the subresource retry of a SyncStatus
// and is not stored.
type Retry struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// RequestOutcome is what became of a request.
type RequestOutcome struct {
	Accepted     bool
	Message      string
	SyncStatuses []string
}
