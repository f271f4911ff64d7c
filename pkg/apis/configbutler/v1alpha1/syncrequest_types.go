// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogSync requests that the source of an AppCatalog is read again and compared with the catalog, and returns the
// result. It is created at the subresource sync of the catalog and is not stored.
type CatalogSync struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, if given, must be those of the catalog.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the result.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Rollback requests the content of an earlier revision, and returns the result. It is created at the subresource rollback
// of an AppCatalog or Environment and is not stored.
type Rollback struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, if given, must be those of the object in
	// the path.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the revision to return to.
	Spec RollbackSpec `json:"spec"`
	// status is the result.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// RollbackSpec is the revision to return to.
type RollbackSpec struct {
	// revision in the history to return to, earlier or later. The object is pinned to it until pinnedRevision is removed
	// from its spec.
	Revision int64 `json:"revision"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Dismissal dismisses a prompt or a notice, and returns the result. Nothing is undone and nothing is synced. It is
// created at the subresource dismiss of a SyncStatus or Environment and is not stored.
type Dismissal struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, if given, must be those of the object in
	// the path.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the result.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Retry requests that failed work is retried, and returns the result. It is created at the subresource retry of a
// SyncStatus and is not stored.
type Retry struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, if given, must be those of the SyncStatus.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the result.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// RequestOutcome is the result of a request.
type RequestOutcome struct {
	// accepted means that the request is stored and will be carried out, even if this server restarts.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
	// id is spec.batch of the record that the request creates, if any. Until the request is carried out, it is also the id
	// in status.pendingRequests of the environment or status.pendingSyncs of the catalog, except for a rollback. Empty for
	// a dry run, and for a request that has nothing to carry out.
	// +optional
	ID string `json:"id,omitempty"`
	// message describes what was done, or where it will be reported.
	// +optional
	Message string `json:"message,omitempty"`
	// syncStatuses are the records of the request, in the namespace of the object in the path. Empty if there is none
	// yet.
	// +optional
	// +listType=set
	SyncStatuses []string `json:"syncStatuses,omitempty"`
}
