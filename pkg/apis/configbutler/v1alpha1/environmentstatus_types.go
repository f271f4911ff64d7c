// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EnvironmentStatus is the observed state of an environment.
type EnvironmentStatus struct {
	// state summarizes the status in one sentence, as the column STATE does: "Synced", "2 workloads changed" or "Failed:
	// ...". The server computes it whenever the object is written.
	// +optional
	State string `json:"state,omitempty"`
	// observedGeneration is the metadata.generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready reports whether the environment matches its spec and its workloads run; CatalogUpToDate, whether
	// it holds what the catalog offers; DependenciesUpToDate, whether the copies of referenced objects match the source;
	// Syncing, that a sync is in progress; Conflicted, that a user must resolve conflicts of fields that were changed
	// here and in the catalog; Held, that automatic syncs wait, and for what; ObjectsMissing, that the target lacks
	// objects of notCopied.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// latestCatalogSync is the SyncStatus of the newest revision that the catalog offers, in the catalog's namespace.
	// +optional
	LatestCatalogSync string `json:"latestCatalogSync,omitempty"`
	// latestRevision is the number of that revision.
	// +optional
	LatestRevision int64 `json:"latestRevision,omitempty"`
	// catalogUID is the metadata.uid of the AppCatalog that the environment follows: the first one that it found under the
	// name in spec.catalogRef, or the one from which a user last requested a sync of everything. If the AppCatalog of that
	// name is another one, since it was deleted and created again, automatic syncs wait for such a request.
	// +optional
	CatalogUID types.UID `json:"catalogUID,omitempty"`
	// appliedCatalogSync is the SyncStatus of the revision that the environment holds, in the catalog's namespace.
	// +optional
	AppliedCatalogSync string `json:"appliedCatalogSync,omitempty"`
	// appliedRevision is the number of that revision. 0 means that none has been applied yet.
	// +optional
	AppliedRevision int64 `json:"appliedRevision,omitempty"`
	// lastCatalogSyncedAt is when workloads were last synced with the catalog.
	// +optional
	LastCatalogSyncedAt *metav1.Time `json:"lastCatalogSyncedAt,omitempty"`
	// changedWorkloadCount is the number of workloads that a sync would change, as shown by the subresource diff.
	// +optional
	ChangedWorkloadCount int32 `json:"changedWorkloadCount,omitempty"`
	// changedWorkloads are those workloads, at most 1000 of them.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	ChangedWorkloads []WorkloadChange `json:"changedWorkloads,omitempty"`
	// latestDependencySync is the open SyncStatus, in this namespace, about changes in the source of objects that
	// workloads refer to. Empty if there are none, or if the record was dismissed.
	// +optional
	LatestDependencySync string `json:"latestDependencySync,omitempty"`
	// lastDependencySyncedAt is when the objects that workloads refer to were last synced with the source.
	// +optional
	LastDependencySyncedAt *metav1.Time `json:"lastDependencySyncedAt,omitempty"`
	// changedDependencies count by type the other objects that a sync would change, as shown by the subresource diff:
	// those of the action Cluster and, while no workload changes, those of the action Catalog.
	// +optional
	// +listType=map
	// +listMapKey=type
	ChangedDependencies []DependencyCount `json:"changedDependencies,omitempty"`
	// dismissedCatalogSync is the latestCatalogSync that a user has dismissed. It is offered again when the catalog
	// changes, or on request.
	// +optional
	DismissedCatalogSync string `json:"dismissedCatalogSync,omitempty"`
	// dismissedBy is the user who dismissed what the catalog offers, as authenticated. Empty if nothing of it is dismissed.
	// +optional
	DismissedBy string `json:"dismissedBy,omitempty"`
	// dismissedAt is when that user did. Absent if nothing of the catalog is dismissed.
	// +optional
	DismissedAt *metav1.Time `json:"dismissedAt,omitempty"`
	// dismissedDependencySync is the SyncStatus about referenced objects that a user has dismissed. It is offered again
	// when more of these objects change in the source, or on request. Until then, changed objects that belong to
	// workloads (autoscalers, disruption budgets, Ingresses, NetworkPolicies) count as dismissed with it.
	// +optional
	DismissedDependencySync string `json:"dismissedDependencySync,omitempty"`
	// dismissals is the number of consecutive dismissals since the last sync of any kind.
	// +optional
	Dismissals int32 `json:"dismissals,omitempty"`
	// activeSyncs are the SyncStatuses, in this namespace, of runs that wait, are in progress, or will be retried, at
	// most four. Changes in the source that wait for a request are not included.
	// +optional
	// +listType=set
	ActiveSyncs []string `json:"activeSyncs,omitempty"`
	// conflicts are the workloads that were not written because fields were changed in the environment and in the
	// catalog, until they are resolved at the subresource resolve. At most 100; further ones are listed when these are
	// resolved.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Conflicts []WorkloadConflict `json:"conflicts,omitempty"`
	// notCopied are objects of the source that workloads of the environment use, that the server does not copy, and that
	// the target lacked at the last comparison with the catalog: after each sync, and every five minutes while there are
	// any. At most 100. `kubectl slipstream missing` prints them for the target.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	NotCopied []NotCopiedObject `json:"notCopied,omitempty"`
	// workloadsReady counts the applied workloads that are ready. Absent until workloads have been applied.
	// +optional
	WorkloadsReady *WorkloadsReady `json:"workloadsReady,omitempty"`
	// lastError is what went wrong last. Absent if nothing did, or it has been resolved.
	// +optional
	LastError *SyncError `json:"lastError,omitempty"`
	// automatedBy is the user who last enabled autoSync, or has since changed what automatic syncs do. They stop if that
	// user no longer has the required permissions, unless spec.serviceAccountName names an account. Absent while autoSync
	// is disabled.
	// +optional
	AutomatedBy *AutomatedBy `json:"automatedBy,omitempty"`
	// expiresAt is when the environment is deleted because of spec.ttl.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// history lists the catalog's revisions that a rollback can return to, each once, the most recently applied first.
	// +optional
	// +listType=map
	// +listMapKey=revision
	History []CatalogRevision `json:"history,omitempty"`
	// pendingEdits are changes of the spec that have not been processed yet, and their authors.
	// +optional
	// +listType=map
	// +listMapKey=generation
	PendingEdits []EnvironmentEdit `json:"pendingEdits,omitempty"`
	// pendingRequests are requests at the subresources sync, resolve and rediscover that have not been carried out yet.
	// +optional
	// +listType=map
	// +listMapKey=id
	PendingRequests []PendingEnvironmentRequest `json:"pendingRequests,omitempty"`
}

// WorkloadChange is a workload of an environment that differs from its catalog.
type WorkloadChange struct {
	// kind of the workload.
	Kind WorkloadKind `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
	// changeType is Added (the environment lacks it), Changed or Removed (the catalog no longer has it).
	ChangeType ChangeType `json:"changeType"`
}

// DependencyCount is the number of objects of a type other than workloads that a sync would change.
type DependencyCount struct {
	// type is the kind of the objects, or CustomResource for custom resources of all kinds in spec.include.
	Type CountedType `json:"type"`
	// count is their number, at least 1.
	Count int32 `json:"count"`
}

// CountedType is the kind of objects other than workloads that a sync would change, or CustomResource for custom
// resources of every kind.
//
// +enum
type CountedType string

const (
	// CountedConfigMap is a ConfigMap.
	CountedConfigMap CountedType = "ConfigMap"
	// CountedSecret is a Secret.
	CountedSecret CountedType = "Secret"
	// CountedService is a Service.
	CountedService CountedType = "Service"
	// CountedServiceAccount is a ServiceAccount.
	CountedServiceAccount CountedType = "ServiceAccount"
	// CountedAutoscaler is a HorizontalPodAutoscaler.
	CountedAutoscaler CountedType = "HorizontalPodAutoscaler"
	// CountedDisruptionBudget is a PodDisruptionBudget.
	CountedDisruptionBudget CountedType = "PodDisruptionBudget"
	// CountedGateway is a Gateway of the Gateway API.
	CountedGateway CountedType = "Gateway"
	// CountedGRPCRoute is a GRPCRoute of the Gateway API.
	CountedGRPCRoute CountedType = "GRPCRoute"
	// CountedHTTPRoute is an HTTPRoute of the Gateway API.
	CountedHTTPRoute CountedType = "HTTPRoute"
	// CountedReferenceGrant is a ReferenceGrant of the Gateway API.
	CountedReferenceGrant CountedType = "ReferenceGrant"
	// CountedIngress is an Ingress.
	CountedIngress CountedType = "Ingress"
	// CountedNetworkPolicy is a NetworkPolicy.
	CountedNetworkPolicy CountedType = "NetworkPolicy"
	// CountedCustomResource is a custom resource of any kind in spec.include.
	CountedCustomResource CountedType = "CustomResource"
)

// Valid reports whether t is one of the types that are counted.
func (t CountedType) Valid() bool {
	switch t {
	case CountedConfigMap, CountedSecret, CountedService, CountedServiceAccount, CountedAutoscaler, CountedDisruptionBudget, CountedIngress,
		CountedNetworkPolicy, CountedGateway, CountedGRPCRoute, CountedHTTPRoute, CountedReferenceGrant, CountedCustomResource:
		return true
	}
	return false
}

// WorkloadConflict is a workload that was changed in the environment and in the catalog, in the same fields.
type WorkloadConflict struct {
	// kind of the workload.
	Kind WorkloadKind `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
	// fields are those that were changed on both sides. At most 100.
	// +listType=map
	// +listMapKey=field
	Fields []FieldConflict `json:"fields"`
}

// FieldConflict is a field that was changed in the environment and in the catalog.
type FieldConflict struct {
	// field is a JSON pointer (RFC 6901). An item of a list is identified by its key, as in
	// /spec/template/spec/containers[name=web]/image.
	Field string `json:"field"`
	// managers are the field managers that changed it in the environment. They include slipstream if the environment's
	// own patches set the field: then it keeps its value, and is listed because other fields of the workload must be
	// resolved.
	// +optional
	// +listType=atomic
	Managers []string `json:"managers,omitempty"`
}

// NotCopiedObject is an object of the source that workloads use and that the server does not copy.
type NotCopiedObject struct {
	// kind is Role, RoleBinding, ClusterRoleBinding or PersistentVolumeClaim.
	Kind string `json:"kind"`
	// name of the object in the source. * means all objects of a kind that the server may not list.
	Name string `json:"name"`
	// reason is GrantsRights (the server grants no permissions), HoldsData (data is not copied) or Unreadable (the server
	// may not list the kind, so it is unknown what the target lacks).
	Reason NotCopiedReason `json:"reason"`
	// serviceAccounts are those of workloads to which the object grants permissions in the source, at most 100. Absent
	// unless the reason is GrantsRights.
	// +optional
	// +listType=set
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
}

// NotCopiedReason is the reason why an object is not copied.
//
// +enum
type NotCopiedReason string

const (
	// NotCopiedGrantsRights is an object of RBAC: the server is not allowed to grant permissions.
	NotCopiedGrantsRights NotCopiedReason = "GrantsRights"
	// NotCopiedHoldsData is a PersistentVolumeClaim.
	NotCopiedHoldsData NotCopiedReason = "HoldsData"
	// NotCopiedUnreadable is a kind that the server may not list.
	NotCopiedUnreadable NotCopiedReason = "Unreadable"
)

// WorkloadsReady counts the workloads that an environment holds.
type WorkloadsReady struct {
	// ready is the number of workloads that are ready.
	Ready int32 `json:"ready"`
	// total is the number of workloads.
	Total int32 `json:"total"`
}

// AutomatedBy is the user, as authenticated at the time, whose permissions apply to the automatic work of the server.
type AutomatedBy struct {
	// username is the Kubernetes user.
	Username string `json:"username"`
	// uid of the user, if the identity provider sets one.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// groups of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// time is when the user enabled or changed that work.
	Time metav1.Time `json:"time"`
}

// EnvironmentEdit is a change of an environment's spec.
type EnvironmentEdit struct {
	// generation is the metadata.generation of the change.
	Generation int64 `json:"generation"`
	// actor is the user who made the change, as authenticated.
	Actor string `json:"actor"`
	// uid of the user, if the identity provider sets one.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// groups of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
	// fields are the changed fields of the spec, such as autoSync. Empty for the creation of the environment.
	// +optional
	// +listType=set
	Fields []string `json:"fields,omitempty"`
}

// PendingEnvironmentRequest is a request about an environment that has not been carried out yet.
type PendingEnvironmentRequest struct {
	// id identifies the request among those of the environment.
	ID string `json:"id"`
	// actor is the user who made it, as authenticated.
	Actor string `json:"actor"`
	// uid of the user, if the identity provider sets one.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// groups of the user. Secrets are copied for the request only while the user may read them, unless the catalog shares
	// them.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
	// type is the subresource of the request: Sync, Resolve or Rediscover.
	Type EnvironmentRequestType `json:"type"`
	// sync is the spec of a request of type Sync.
	// +optional
	Sync *SyncRequestSpec `json:"sync,omitempty"`
	// resolve is the spec of a request of type Resolve.
	// +optional
	Resolve *ConflictResolutionSpec `json:"resolve,omitempty"`
}

// EnvironmentRequestType is the type of a request.
//
// +enum
type EnvironmentRequestType string

const (
	// EnvironmentRequestSync requests a sync.
	EnvironmentRequestSync EnvironmentRequestType = "Sync"
	// EnvironmentRequestResolve resolves conflicts.
	EnvironmentRequestResolve EnvironmentRequestType = "Resolve"
	// EnvironmentRequestRediscover requests that dependencies are discovered again.
	EnvironmentRequestRediscover EnvironmentRequestType = "Rediscover"
)
