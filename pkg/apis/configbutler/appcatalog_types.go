// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppCatalog follows workloads in one namespace, the source, and offers them to environments in numbered revisions. Its
// content is in CatalogWorkloads, its changes are recorded in SyncStatuses.
type AppCatalog struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   AppCatalogSpec
	Status AppCatalogStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AppCatalogList is a list of AppCatalogs.
type AppCatalogList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []AppCatalog
}

// AppCatalogSpec selects the workloads that a catalog follows, by name, by a selector, or both, and configures how it
// offers them.
type AppCatalogSpec struct {
	SourceNamespace  string
	Workloads        []WorkloadReference
	WorkloadSelector *metav1.LabelSelector
	Patches          []Patch
	Ignore           []IgnoreRule
	PauseUntil       *metav1.Time
	PreviewOnly      bool
	PinnedRevision   *int64
	HistoryLimit     *int32
	Secrets          CatalogSecretsPolicy
	AccessPolicy     *CatalogAccessPolicy
}

// WorkloadReference names a workload in the source of a catalog.
type WorkloadReference struct {
	Kind WorkloadKind
	Name string
}

// WorkloadKind is a kind of objects that a catalog can offer.
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
type CatalogSecretsPolicy string

const (
	// CatalogSecretsRequester requires the permission of the user who requests an environment's sync.
	CatalogSecretsRequester CatalogSecretsPolicy = "Requester"
	// CatalogSecretsShared requires the permission of the catalog's editor, for all environments.
	CatalogSecretsShared CatalogSecretsPolicy = "Shared"
)

// AppCatalogStatus is the observed state of a catalog.
type AppCatalogStatus struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
	Revision           int64
	LastSyncedAt       *metav1.Time
	LatestSync         string
	Workloads          []CatalogEntry
	History            []CatalogRevision
	EditedBy           *AutomatedBy
	PendingEdits       []CatalogEdit
	PendingSyncs       []PendingCatalogSync
}

// CatalogEntry is a workload that a catalog offers. Its content is in the CatalogWorkload with the name <catalog>.<kind
// in lower case>.<name>.
type CatalogEntry struct {
	Kind     WorkloadKind
	Name     string
	Revision int64
	Hash     string
	Missing  bool
}

// CatalogRevision is a revision that a catalog, or an environment built from it, can return to.
type CatalogRevision struct {
	Revision   int64
	Time       metav1.Time
	SyncStatus string
}

// CatalogEdit is a change of a catalog's spec.
type CatalogEdit struct {
	Generation int64
	Actor      string
	Time       metav1.Time
}

// PendingCatalogSync is a request to read the source of a catalog again that has not been carried out yet.
type PendingCatalogSync struct {
	ID    string
	Actor string
	Time  metav1.Time
}
