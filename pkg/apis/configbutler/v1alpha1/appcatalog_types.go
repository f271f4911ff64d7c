// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=Sync,verb=create,subresource=sync,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.CatalogSync,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.CatalogSync
// +genclient:method=Rollback,verb=create,subresource=rollback,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Rollback,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Rollback
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppCatalog follows workloads in one namespace, the source, and offers them to environments in numbered revisions. Its
// content is in CatalogWorkloads, its changes are recorded in SyncStatuses.
type AppCatalog struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name has at most 63 characters and no dots, because the names and labels
	// of records contain it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state.
	Spec AppCatalogSpec `json:"spec"`
	// status is the observed state. Only the server writes it.
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

// AppCatalogSpec selects the workloads that a catalog follows, by name, by a selector, or both, and configures how it
// offers them.
type AppCatalogSpec struct {
	// sourceNamespace is the namespace whose workloads are followed, such as production. It is immutable: revisions and
	// records refer to one source.
	SourceNamespace string `json:"sourceNamespace"`
	// workloads are followed by kind and name, even if the source does not have them yet. At most 1000.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Workloads []WorkloadReference `json:"workloads,omitempty"`
	// workloadSelector matches the labels of further workloads in the source. An empty selector ({}) matches all of them.
	// A workload that another object controls, such as the ReplicaSet of a Deployment, is never selected. A selected
	// workload stays in the catalog, marked as missing, if it is deleted or loses its labels. It has at most 500 labels,
	// expressions and values.
	// +optional
	WorkloadSelector *metav1.LabelSelector `json:"workloadSelector,omitempty"`
	// patches are applied to the workloads of the source, in the order of the list. At most 100.
	// +optional
	// +listType=atomic
	Patches []Patch `json:"patches,omitempty"`
	// ignore names fields that do not count as a change and are not offered. A given list replaces the default, which is
	// /spec/replicas of every workload; with an empty list, every field counts. At most 100 rules, with at most 1000
	// fields and managers in total, and 64 KiB of fields.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitzero"`
	// pauseUntil pauses the catalog until that time. Afterwards, one record lists the changes of the source meanwhile,
	// and another one those of editors. A rollback is not paused. A time in the past means no pause.
	// +optional
	PauseUntil *metav1.Time `json:"pauseUntil,omitempty"`
	// previewOnly records changes of the source without adopting them. Setting it back to false makes the catalog offer
	// more, so the user who does is recorded as editor. Defaults to false.
	// +optional
	PreviewOnly bool `json:"previewOnly,omitempty"`
	// pinnedRevision keeps the catalog at the content of a revision in status.history, which is offered as a new
	// revision. While it is set, changes of the source wait; when it is removed, one record lists the changes meanwhile.
	// The subresource rollback sets it.
	// +optional
	PinnedRevision *int64 `json:"pinnedRevision,omitempty"`
	// historyLimit is the number of revisions that a rollback can return to, 1 to 100. Defaults to 10.
	// +optional
	// +default=10
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
	// secrets selects whose permission to read Secrets is required to copy them from the source to an environment.
	// Requester: the permission of the user who requests the environment's sync or has enabled its automatic sync.
	// Shared: the permission of the catalog's editor, for as long as the editor has it, which gives the Secrets to every
	// environment of the catalog. Defaults to Requester.
	// +optional
	// +default=ref(CatalogSecretsRequester)
	Secrets CatalogSecretsPolicy `json:"secrets,omitempty"`
	// accessPolicy selects the namespaces whose environments may use the catalog. Defaults to this namespace.
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

// CatalogSecretsPolicy selects whose permission to read Secrets of the source is required.
//
// +enum
type CatalogSecretsPolicy string

const (
	// CatalogSecretsRequester requires the permission of the user who requests an environment's sync.
	CatalogSecretsRequester CatalogSecretsPolicy = "Requester"
	// CatalogSecretsShared requires the permission of the catalog's editor, for all environments.
	CatalogSecretsShared CatalogSecretsPolicy = "Shared"
)

// AppCatalogStatus is the observed state of a catalog.
type AppCatalogStatus struct {
	// observedGeneration is the metadata.generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready reports whether the catalog offers what its spec selects; SourceReachable, whether the source can
	// be read; WorkloadsMissing, that the source lacks workloads of the catalog; Paused, that changes of the source wait.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// revision is the number of the latest offered revision. It only increases, even if a rollback offers earlier content
	// again. 0 means that nothing has been offered yet.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// lastSyncedAt is when the revision was created.
	// +optional
	LastSyncedAt *metav1.Time `json:"lastSyncedAt,omitempty"`
	// latestSync is the SyncStatus of the revision, in this namespace.
	// +optional
	LatestSync string `json:"latestSync,omitempty"`
	// workloads are the workloads of the revision.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Workloads []CatalogEntry `json:"workloads,omitempty"`
	// history lists the revisions that a rollback can return to, the newest first.
	// +optional
	// +listType=map
	// +listMapKey=revision
	History []CatalogRevision `json:"history,omitempty"`
	// editedBy is the user who created the catalog or last made it offer more. If that user may no longer read what the
	// catalog offers, nothing more is adopted from the source, until another user makes the catalog offer more. That
	// user's permissions also apply to copies: environments no longer copy a Secret that the catalog shares, a ConfigMap
	// or a Service that this user may no longer read. Absent if the user is not known: then no permissions are checked,
	// and no Secrets are shared.
	// +optional
	EditedBy *AutomatedBy `json:"editedBy,omitempty"`
	// pendingEdits are changes of the spec that the catalog has not adopted yet, and their authors.
	// +optional
	// +listType=map
	// +listMapKey=generation
	PendingEdits []CatalogEdit `json:"pendingEdits,omitempty"`
	// pendingSyncs are requests at the subresource sync that have not been carried out yet.
	// +optional
	// +listType=map
	// +listMapKey=id
	PendingSyncs []PendingCatalogSync `json:"pendingSyncs,omitempty"`
}

// CatalogEntry is a workload that a catalog offers. Its content is in the CatalogWorkload with the name <catalog>.<kind
// in lower case>.<name>.
type CatalogEntry struct {
	// kind of the workload.
	Kind WorkloadKind `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
	// revision is the catalog's revision that last changed the workload.
	Revision int64 `json:"revision"`
	// hash identifies the offered content. Equal content has the same hash.
	// +optional
	Hash string `json:"hash,omitempty"`
	// missing means that the source does not have the workload. It stays in the catalog, as it was last seen, until an
	// editor removes it.
	// +optional
	Missing bool `json:"missing,omitempty"`
}

// CatalogRevision is a revision that a catalog, or an environment built from it, can return to.
type CatalogRevision struct {
	// revision is its number.
	Revision int64 `json:"revision"`
	// time is when the catalog created it, or when it was applied to the environment.
	Time metav1.Time `json:"time"`
	// syncStatus is the name of its record in this namespace, which may have expired.
	// +optional
	SyncStatus string `json:"syncStatus,omitempty"`
}

// CatalogEdit is a change of a catalog's spec.
type CatalogEdit struct {
	// generation is the metadata.generation of the change.
	Generation int64 `json:"generation"`
	// actor is the user who made the change, as authenticated.
	Actor string `json:"actor"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
}

// PendingCatalogSync is a request to read the source of a catalog again that has not been carried out yet.
type PendingCatalogSync struct {
	// id identifies the request among those of the catalog.
	ID string `json:"id"`
	// actor is the user who made it, as authenticated.
	Actor string `json:"actor"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
}
