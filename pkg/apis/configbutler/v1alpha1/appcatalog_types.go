// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=Sync,verb=create,subresource=sync,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.CatalogSync,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.CatalogSync
// +genclient:method=Rollback,verb=create,subresource=rollback,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Rollback,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Rollback
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppCatalog follows workloads in one namespace, the source, and offers them to environments, revision by revision. Its
// content is in CatalogWorkloads, what changed and when in SyncStatuses.
type AppCatalog struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name has at most 63 characters and no dots, because the names and the
	// labels of records are made of it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the user wants.
	Spec AppCatalogSpec `json:"spec"`
	// status is what the server found. Only the server writes it.
	// +optional
	Status AppCatalogStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppCatalogList is a list of AppCatalogs.
type AppCatalogList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []AppCatalog `json:"items"`
}

// AppCatalogSpec says which workloads a catalog follows and how it offers them. It names workloads, a selector, or both.
type AppCatalogSpec struct {
	// sourceNamespace is the namespace whose workloads are followed, such as production. It cannot be changed: revisions
	// and records are about one source.
	SourceNamespace string `json:"sourceNamespace"`
	// workloads are followed by kind and name, also while the source does not have them. At most 1000.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Workloads []WorkloadReference `json:"workloads,omitempty"`
	// workloadSelector matches the labels of further workloads in the source. An empty selector ({}) matches all of them.
	// A workload that another object controls, such as the ReplicaSet of a Deployment, is never selected. One that has
	// been selected stays in the catalog, marked as missing, when it is deleted or loses its labels.
	// +optional
	WorkloadSelector *metav1.LabelSelector `json:"workloadSelector,omitempty"`
	// patches are laid over what the source holds, one after another in the order of the list. At most 100.
	// +optional
	// +listType=atomic
	Patches []Patch `json:"patches,omitempty"`
	// ignore names fields that never count as a change and are not offered. A list that is given replaces the
	// default, which is /spec/replicas of every workload; an empty list lets every field count. At most 100
	// rules, which name at most 1000 fields and managers in all.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitzero"`
	// pauseUntil keeps the catalog as it is until that time. Then one record says what the source has changed meanwhile, and
	// another one what editors have. Only a rollback does not wait. A time that has passed means no pause.
	// +optional
	PauseUntil *metav1.Time `json:"pauseUntil,omitempty"`
	// previewOnly records changes of the source without taking them over. Whoever ends it has the catalog show more. Defaults
	// to false.
	// +optional
	PreviewOnly bool `json:"previewOnly,omitempty"`
	// pinnedRevision keeps the catalog at what it was at a revision listed in status.history. What it held then is offered
	// as a new revision. While it is set, changes of the source wait; when it is taken away, one record says what changed
	// meanwhile. The subresource rollback sets it.
	// +optional
	PinnedRevision *int64 `json:"pinnedRevision,omitempty"`
	// historyLimit is how many revisions can be gone back to, 1 to 100. Defaults to 10.
	// +optional
	// +default=10
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
	// secrets says whose permission to read Secrets counts when they are copied from the source to an environment.
	// Requester: that of whoever asks for the environment's sync, or has turned on its automatic one. Shared: the
	// permission of the catalog's editor, who with it lets every environment of the catalog have them while having it. Defaults
	// to Requester.
	// +optional
	// +default=ref(CatalogSecretsRequester)
	Secrets CatalogSecretsPolicy `json:"secrets,omitempty"`
	// accessPolicy says which namespaces' environments may use the catalog. Defaults to those of this namespace.
	// +optional
	AccessPolicy *CatalogAccessPolicy `json:"accessPolicy,omitempty"`
}

// WorkloadReference names a workload in the source of a catalog.
type WorkloadReference struct {
	// kind of the workload.
	Kind WorkloadKind `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
}

// WorkloadKind is a kind of objects that a catalog can offer.
//
// +enum
type WorkloadKind string

const (
	// WorkloadDeployment is a Deployment of the group apps.
	WorkloadDeployment WorkloadKind = "Deployment"
	// WorkloadStatefulSet is a StatefulSet of the group apps.
	WorkloadStatefulSet WorkloadKind = "StatefulSet"
	// WorkloadDaemonSet is a DaemonSet of the group apps.
	WorkloadDaemonSet WorkloadKind = "DaemonSet"
	// WorkloadReplicaSet is a ReplicaSet of the group apps.
	WorkloadReplicaSet WorkloadKind = "ReplicaSet"
	// WorkloadJob is a Job of the group batch.
	WorkloadJob WorkloadKind = "Job"
	// WorkloadCronJob is a CronJob of the group batch.
	WorkloadCronJob WorkloadKind = "CronJob"
)

// CatalogSecretsPolicy is whose permission to read Secrets of the source counts.
//
// +enum
type CatalogSecretsPolicy string

const (
	// CatalogSecretsRequester asks for the permission of whoever wants an environment to be synced.
	CatalogSecretsRequester CatalogSecretsPolicy = "Requester"
	// CatalogSecretsShared lets the permission of the catalog's editor do for all environments, as long as the editor has it.
	CatalogSecretsShared CatalogSecretsPolicy = "Shared"
)

// AppCatalogStatus is what the server found out about a catalog.
type AppCatalogStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready says whether the catalog offers what its spec wants; SourceReachable, whether the source can be
	// read; WorkloadsMissing, that the source lacks workloads of the catalog; Paused, that changes of the source wait.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// revision counts what the catalog has offered. It only ever rises, also when a rollback offers again what was there
	// before. 0 means that nothing has been offered yet.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// lastSyncedAt is when the revision was made.
	// +optional
	LastSyncedAt *metav1.Time `json:"lastSyncedAt,omitempty"`
	// latestSync is the SyncStatus of the revision, in this namespace.
	// +optional
	LatestSync string `json:"latestSync,omitempty"`
	// workloads are those of the revision.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Workloads []CatalogEntry `json:"workloads,omitempty"`
	// history are the revisions that can be gone back to, the newest first.
	// +optional
	// +listType=map
	// +listMapKey=revision
	History []CatalogRevision `json:"history,omitempty"`
	// editedBy is the user who last had the catalog show more, as whoever creates it does. Nothing is taken over from the
	// source any more when that user may no longer read what the catalog shows; whoever has it show more takes their place.
	// The same user consents to what environments copy: they copy no Secret that the catalog shares, no ConfigMap and no Service any
	// more that this user may no longer read. Absent when the user is not known: then no permissions are asked for, and no Secrets
	// are shared.
	// +optional
	EditedBy *AutomatedBy `json:"editedBy,omitempty"`
	// pendingEdits are changes of the spec that the catalog does not show yet, and who made them.
	// +optional
	// +listType=map
	// +listMapKey=generation
	PendingEdits []CatalogEdit `json:"pendingEdits,omitempty"`
	// pendingSyncs are the requests, made at the subresource sync, that have not been carried out yet.
	// +optional
	// +listType=map
	// +listMapKey=id
	PendingSyncs []PendingCatalogSync `json:"pendingSyncs,omitempty"`
}

// CatalogEntry is a workload that a catalog offers. Its content is in the CatalogWorkload of the name
// <catalog>.<kind in lower case>.<name>.
type CatalogEntry struct {
	// kind of the workload.
	Kind WorkloadKind `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
	// revision is the catalog's revision that last changed the workload.
	Revision int64 `json:"revision"`
	// hash tells versions of what is offered apart. It is equal when the content is.
	// +optional
	Hash string `json:"hash,omitempty"`
	// missing says that the source does not have the workload. It stays in the catalog, as it was last seen, until an
	// editor removes it.
	// +optional
	Missing bool `json:"missing,omitempty"`
}

// CatalogRevision is a revision that a catalog, or an environment that is built from it, can go back to.
type CatalogRevision struct {
	// revision is its number.
	Revision int64 `json:"revision"`
	// time is when the catalog made it, or the environment was brought to it.
	Time metav1.Time `json:"time"`
	// syncStatus is the record of that, in this namespace, which may be gone when it is too old.
	// +optional
	SyncStatus string `json:"syncStatus,omitempty"`
}

// CatalogEdit is a change of a catalog's spec.
type CatalogEdit struct {
	// generation is the metadata.generation that the change has made.
	Generation int64 `json:"generation"`
	// actor is the user who made the change, as authenticated.
	Actor string `json:"actor"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
}

// PendingCatalogSync is a request to read the source of a catalog anew that has not been carried out yet.
type PendingCatalogSync struct {
	// id tells the request from others of the catalog.
	ID string `json:"id"`
	// actor is the user who made it, as authenticated.
	Actor string `json:"actor"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
}
