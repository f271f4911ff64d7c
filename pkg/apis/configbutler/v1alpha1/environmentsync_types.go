// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncRequest requests a sync of an Environment, and returns the result. It is created at the subresource sync of the
// environment and is not stored. A dry run only returns the plan.
type SyncRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, if given, must be those of the environment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec selects what to sync. Empty means everything.
	// +optional
	Spec SyncRequestSpec `json:"spec,omitempty"`
	// status is the result.
	// +optional
	Status SyncRequestStatus `json:"status,omitempty"`
}

// SyncRequestSpec selects what to sync.
type SyncRequestSpec struct {
	// action is Catalog (sync workloads with the catalog, and the objects that they refer to), Cluster (refresh the
	// objects that workloads refer to, but not the workloads) or All (Catalog, then Cluster). Defaults to All.
	// +optional
	// +default=ref(SyncActionAll)
	Action SyncAction `json:"action,omitempty"`
	// expectedCatalogSync is the status.latestCatalogSync that the client has seen. The request fails with a conflict if
	// there is a newer one. Empty means any.
	// +optional
	ExpectedCatalogSync string `json:"expectedCatalogSync,omitempty"`
	// expectedDependencySync is the status.latestDependencySync that the client has seen. The request fails with a
	// conflict if there is a newer one. Empty means any.
	// +optional
	ExpectedDependencySync string `json:"expectedDependencySync,omitempty"`
	// force syncs even if a window is closed or a revision is pinned, and takes over objects of the same name that the
	// environment has not written. Defaults to false.
	// +optional
	Force bool `json:"force,omitempty"`
	// workloads limits the sync to these workloads and the objects that they refer to. The environment is up to date once
	// all of its workloads have been synced. Empty means all. At most 1000.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Workloads []WorkloadReference `json:"workloads,omitempty"`
}

// SyncRequestStatus is the result of a request.
type SyncRequestStatus struct {
	RequestOutcome `json:",inline"`
	// plan is what would be changed. It is set if the request was a dry run.
	// +optional
	Plan *SyncPlan `json:"plan,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentDiff shows what syncs of an Environment would currently change. It is read at the environment's subresources
// diff, which never shows the content of Secrets, and secretdiff, which does. It is not stored.
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
	// catalogSync is the SyncStatus, in the catalog's namespace, of the revision that the plan applies, for
	// expectedCatalogSync in a request.
	// +optional
	CatalogSync string `json:"catalogSync,omitempty"`
	// dependencySync is the open SyncStatus, in the environment's namespace, about objects that workloads refer to, for
	// expectedDependencySync in a request.
	// +optional
	DependencySync string `json:"dependencySync,omitempty"`
	// fromRevision is the catalog's revision that the environment holds. 0 means none.
	// +optional
	FromRevision int64 `json:"fromRevision,omitempty"`
	// revision is the catalog's revision that the plan applies. 0 means none.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// changes are the objects that would be changed, in the order in which they are written.
	// +optional
	// +listType=atomic
	Changes []ObjectChange `json:"changes,omitempty"`
	// unchanged is the number of objects that are up to date.
	// +optional
	Unchanged int32 `json:"unchanged,omitempty"`
	// warnings describe what a sync does not do, such as copying the data of a PersistentVolumeClaim.
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
	// fields are the fields that would be changed. Empty if the object would be created or deleted.
	// +optional
	// +listType=atomic
	Fields []FieldChange `json:"fields,omitempty"`
	// changedBy are the authors of the change in the source, as far as known.
	// +optional
	// +listType=atomic
	ChangedBy []SourceAuthor `json:"changedBy,omitempty"`
	// commits contain the change, if a GitDestination mirrors the source.
	// +optional
	// +listType=atomic
	Commits []MirroredCommit `json:"commits,omitempty"`
	// refusal is the reason why the object would not be written, such as an exceeded quota, or an existing object of the
	// same name that the environment has not written; no object at all is written then. Or that the source no longer has
	// the object, and the copy is kept. Empty if it would be written.
	// +optional
	Refusal string `json:"refusal,omitempty"`
}

// FieldChange is a field that a sync would change.
type FieldChange struct {
	// field is a JSON pointer (RFC 6901). An item of a list is identified by its key, as in
	// /spec/template/spec/containers[name=web]/image.
	Field string `json:"field"`
	// changeType is Added, Changed or Removed.
	ChangeType ChangeType `json:"changeType"`
	// owners are the field managers that own the field in the environment.
	// +optional
	// +listType=atomic
	Owners []string `json:"owners,omitempty"`
	// conflict means that, in a Branch, a user must decide whether the change is made.
	// +optional
	Conflict bool `json:"conflict,omitempty"`
	// before is the value in the environment, as JSON. Absent if there is none, or if it is hidden.
	// +optional
	Before *string `json:"before,omitempty"`
	// after is the value after the sync, or, in conflict, the one that the catalog offers, as JSON. Absent if there is none,
	// or if it is hidden.
	// +optional
	After *string `json:"after,omitempty"`
	// hidden means that the values are not shown, because they belong to a Secret, which the subresource secretdiff
	// shows, to a custom resource, or to a ConfigMap that only patches or include of the environment refer to.
	// +optional
	Hidden bool `json:"hidden,omitempty"`
}
