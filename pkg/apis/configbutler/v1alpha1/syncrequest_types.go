// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogSync asks for the source of an AppCatalog to be read anew and compared with it now, and is the answer. It is
// created at the subresource sync of the catalog and is not stored.
type CatalogSync struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, when they are given, must be those of the catalog.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the answer.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Rollback asks for what was there at an earlier revision, and is the answer. It is created at the subresource rollback of
// an AppCatalog or Environment and is not stored.
type Rollback struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, when they are given, must be those of the object in
	// the path.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says how far to go back.
	Spec RollbackSpec `json:"spec"`
	// status is the answer.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// RollbackSpec says how far to go back.
type RollbackSpec struct {
	// revision to go to, back or forth, among those in the history. The object is pinned there until somebody takes
	// pinnedRevision out of its spec.
	Revision int64 `json:"revision"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Dismissal puts a prompt or a notice aside, and is the answer. Nothing is undone and nothing is synced. It is created at
// the subresource dismiss of a SyncStatus or Environment and is not stored.
type Dismissal struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, when they are given, must be those of the object in
	// the path.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the answer.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Retry asks for what failed to be tried again, and is the answer. It is created at the subresource retry of a SyncStatus
// and is not stored.
type Retry struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, when they are given, must be those of the SyncStatus.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the answer.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// RequestOutcome is what became of a request.
type RequestOutcome struct {
	// accepted says that the request has been recorded and will be carried out, also if this server ends now.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
	// message says in a sentence what was done, or where that can be seen later.
	// +optional
	Message string `json:"message,omitempty"`
	// syncStatuses are the records that tell what becomes of the request, in the namespace of the object in the path. Empty
	// when there is none yet.
	// +optional
	// +listType=set
	SyncStatuses []string `json:"syncStatuses,omitempty"`
}
