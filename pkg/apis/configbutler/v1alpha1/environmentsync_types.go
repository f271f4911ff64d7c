// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncRequest asks for an Environment to be synced, and is the answer. It is created at the subresource sync of the
// environment and is not stored. As a dry run it only plans.
type SyncRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, when they are given, must be those of the environment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says what to sync. Empty means everything.
	// +optional
	Spec SyncRequestSpec `json:"spec,omitempty"`
	// status is the answer.
	// +optional
	Status SyncRequestStatus `json:"status,omitempty"`
}

// SyncRequestSpec says what to sync.
type SyncRequestSpec struct {
	// action is Catalog (bring workloads to what the catalog offers, with what they refer to), Cluster (refresh what they
	// refer to and leave them alone) or All (the one and then the other). Defaults to All.
	// +optional
	// +default=ref(SyncActionAll)
	Action SyncAction `json:"action,omitempty"`
	// expectedCatalogSync is the status.latestCatalogSync that was seen. The request is refused, as a conflict, when there
	// is a newer one. Empty means any.
	// +optional
	ExpectedCatalogSync string `json:"expectedCatalogSync,omitempty"`
	// expectedDependencySync is the status.latestDependencySync that was seen. The request is refused, as a conflict, when
	// there is a newer one. Empty means any.
	// +optional
	ExpectedDependencySync string `json:"expectedDependencySync,omitempty"`
	// force has the sync done although a window is closed or a revision is pinned, and takes over objects of the same name
	// that the environment has not written. Defaults to false.
	// +optional
	Force bool `json:"force,omitempty"`
	// workloads are the only ones to sync, with what they refer to. The environment counts as up to date when all have
	// been. Empty means all. At most 1000.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Workloads []WorkloadReference `json:"workloads,omitempty"`
}

// SyncRequestStatus is what became of a request.
type SyncRequestStatus struct {
	RequestOutcome `json:",inline"`
	// plan is what would be changed. It is there when the request was a dry run.
	// +optional
	Plan *SyncPlan `json:"plan,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentDiff says what syncs of an Environment would change now. It is read at the environment's subresources diff,
// which never shows what Secrets hold, and secretdiff, which does. It is not stored.
type EnvironmentDiff struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata, with the name and namespace of the environment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is what the action All would change.
	// +optional
	Status SyncPlan `json:"status,omitempty"`
}

// SyncPlan is what a sync would change.
type SyncPlan struct {
	// catalogSync is the SyncStatus of the revision that the plan brings, in the catalog's namespace: what to expect when
	// asking for it.
	// +optional
	CatalogSync string `json:"catalogSync,omitempty"`
	// dependencySync is the open SyncStatus, in the environment's namespace, about what workloads refer to: what to expect
	// when asking for it.
	// +optional
	DependencySync string `json:"dependencySync,omitempty"`
	// fromRevision is the catalog's revision that the environment holds. 0 means none.
	// +optional
	FromRevision int64 `json:"fromRevision,omitempty"`
	// revision is the catalog's revision that the plan brings. 0 means that it brings none.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// changes are the objects that would be changed, in the order in which they are written.
	// +optional
	// +listType=atomic
	Changes []ObjectChange `json:"changes,omitempty"`
	// unchanged is the number of objects that are what they should be.
	// +optional
	Unchanged int32 `json:"unchanged,omitempty"`
	// warnings are sentences about what a sync does not do, such as to copy the data of a PersistentVolumeClaim.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
}

// ObjectChange is an object that a sync would change.
type ObjectChange struct {
	// action is the one that changes it: Catalog or Cluster.
	Action SyncAction `json:"action"`
	// apiVersion of the object.
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object. Empty for a Namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// changeType is Added (it would be created), Changed (it would be updated) or Removed (it would be deleted).
	ChangeType ChangeType `json:"changeType"`
	// fields are those that would be changed. None when the object would be created or deleted.
	// +optional
	// +listType=atomic
	Fields []FieldChange `json:"fields,omitempty"`
	// changedBy are those who made the change in the source, as far as it is known.
	// +optional
	// +listType=atomic
	ChangedBy []SourceAuthor `json:"changedBy,omitempty"`
	// commits hold the change, where a GitDestination mirrors the source.
	// +optional
	// +listType=atomic
	Commits []MirroredCommit `json:"commits,omitempty"`
	// refusal says why the object would not be written, such as a quota that is used up, or that an object of the same
	// name is there that the environment has not written; nothing at all is written then. Or that the source does not have it
	// any more, and the copy stays. Empty when it would be written.
	// +optional
	Refusal string `json:"refusal,omitempty"`
}

// FieldChange is a field that a sync would change.
type FieldChange struct {
	// field is a JSON pointer (RFC 6901). An item of a list is named by its key, as in
	// /spec/template/spec/containers[name=web]/image.
	Field string `json:"field"`
	// changeType is Added, Changed or Removed.
	ChangeType ChangeType `json:"changeType"`
	// owners are the field managers that own the field in the environment.
	// +optional
	// +listType=atomic
	Owners []string `json:"owners,omitempty"`
	// conflict says that somebody has to decide, in a Branch, whether the change is made.
	// +optional
	Conflict bool `json:"conflict,omitempty"`
	// before is the value in the environment, as JSON. Absent when there is none, or it is hidden.
	// +optional
	Before *string `json:"before,omitempty"`
	// after is the value that it would get, as JSON. Absent when there is none, or it is hidden.
	// +optional
	After *string `json:"after,omitempty"`
	// hidden says that the values are not shown, because they are those of a Secret, which the subresource secretdiff
	// shows, of a custom resource, or of a ConfigMap that only patches or include of the environment name.
	// +optional
	Hidden bool `json:"hidden,omitempty"`
}
