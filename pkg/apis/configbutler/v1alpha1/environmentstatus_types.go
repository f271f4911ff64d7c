// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EnvironmentStatus is what the server found out about an environment.
type EnvironmentStatus struct {
	// state says in one sentence how things are, as the column STATE does: "Synced", "2 workloads changed" or "Failed: ...". The
	// server computes it whenever the object is written.
	// +optional
	State string `json:"state,omitempty"`
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready says whether the environment is what its spec wants and its workloads run; CatalogUpToDate,
	// whether it holds what the catalog offers; DependenciesUpToDate, whether what its workloads refer to is as in the
	// source; Syncing, that a sync is being done; Conflicted, that somebody has to decide about fields that were changed
	// here and in the catalog; Held, that automatic syncs wait, and for what; ObjectsMissing, that the target lacks objects of
	// notCopied.
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
	// appliedCatalogSync is the SyncStatus of the revision that the environment holds, in the catalog's namespace.
	// +optional
	AppliedCatalogSync string `json:"appliedCatalogSync,omitempty"`
	// appliedRevision is the number of that revision. 0 means that none has been applied yet.
	// +optional
	AppliedRevision int64 `json:"appliedRevision,omitempty"`
	// lastCatalogSyncedAt is when workloads were last brought to what the catalog offers.
	// +optional
	LastCatalogSyncedAt *metav1.Time `json:"lastCatalogSyncedAt,omitempty"`
	// changedWorkloadCount is the number of workloads that a sync would change: those that the subresource diff shows.
	// +optional
	ChangedWorkloadCount int32 `json:"changedWorkloadCount,omitempty"`
	// changedWorkloads are those workloads, at most 1000 of them.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	ChangedWorkloads []WorkloadChange `json:"changedWorkloads,omitempty"`
	// latestDependencySync is the open SyncStatus, in this namespace, about what workloads refer to and what has changed
	// in the source. Empty when nothing has, or the record was dismissed.
	// +optional
	LatestDependencySync string `json:"latestDependencySync,omitempty"`
	// lastDependencySyncedAt is when what workloads refer to was last brought to what it is in the source.
	// +optional
	LastDependencySyncedAt *metav1.Time `json:"lastDependencySyncedAt,omitempty"`
	// changedDependencies count, by types, the other objects that a sync would change and that the subresource diff shows: those
	// that the action Cluster brings, and, while no workload changes, those of the action Catalog.
	// +optional
	// +listType=map
	// +listMapKey=type
	ChangedDependencies []DependencyCount `json:"changedDependencies,omitempty"`
	// dismissedCatalogSync is the latestCatalogSync that somebody has put aside. It is offered again when the catalog
	// changes, or somebody asks for it.
	// +optional
	DismissedCatalogSync string `json:"dismissedCatalogSync,omitempty"`
	// dismissedDependencySync is the SyncStatus about what workloads refer to that somebody has put aside. It is offered again when
	// more of that changes in the source, or somebody asks for it. Meanwhile, objects that are about workloads and change
	// (autoscalers, disruption budgets, Ingresses, NetworkPolicies) count as put aside with it.
	// +optional
	DismissedDependencySync string `json:"dismissedDependencySync,omitempty"`
	// dismissals is how many prompts in a row have been put aside since the last sync of any kind.
	// +optional
	Dismissals int32 `json:"dismissals,omitempty"`
	// activeSyncs are the SyncStatuses, in this namespace, of the runs that wait, go on, or are to be tried again, at most four.
	// What has changed in the source and waits for somebody to ask for it is not among them.
	// +optional
	// +listType=set
	ActiveSyncs []string `json:"activeSyncs,omitempty"`
	// conflicts are the workloads for which nothing was written, because fields were changed in the environment and in the
	// catalog, until the subresource resolve says what to do. At most 100; the others come when these are resolved.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Conflicts []WorkloadConflict `json:"conflicts,omitempty"`
	// notCopied are objects of the source that workloads of the environment use, that the server does not copy, and that the target
	// lacked when what the catalog offers was last compared with it: after each sync, and every five minutes while there are any.
	// At most 100. `kubectl slipstream missing` prints them for the target.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	NotCopied []NotCopiedObject `json:"notCopied,omitempty"`
	// workloadsReady says whether what was applied came up. Absent until something was.
	// +optional
	WorkloadsReady *WorkloadsReady `json:"workloadsReady,omitempty"`
	// lastError is what went wrong last. Absent when nothing did, or it was put right.
	// +optional
	LastError *SyncError `json:"lastError,omitempty"`
	// automatedBy is the user who last turned autoSync on, or has changed since what automatic syncs do. They stop when that
	// user may no longer do what they do, unless spec.serviceAccountName names an account. Absent while autoSync is off.
	// +optional
	AutomatedBy *AutomatedBy `json:"automatedBy,omitempty"`
	// expiresAt is when the environment is deleted, by spec.ttl.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// history are the catalog's revisions that can be gone back to, the one that was applied last first, each once.
	// +optional
	// +listType=map
	// +listMapKey=revision
	History []CatalogRevision `json:"history,omitempty"`
	// pendingEdits are changes of the spec that have not been dealt with yet, and who made them.
	// +optional
	// +listType=map
	// +listMapKey=generation
	PendingEdits []EnvironmentEdit `json:"pendingEdits,omitempty"`
	// pendingRequests are the requests, made at the subresources sync, resolve and rediscover, that have not been carried
	// out yet.
	// +optional
	// +listType=map
	// +listMapKey=id
	PendingRequests []PendingEnvironmentRequest `json:"pendingRequests,omitempty"`
}

// WorkloadChange is a workload in which an environment differs from what its catalog offers.
type WorkloadChange struct {
	// kind of the workload.
	Kind WorkloadKind `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
	// changeType is Added (the environment lacks it), Changed or Removed (the catalog has it no longer).
	ChangeType ChangeType `json:"changeType"`
}

// DependencyCount counts objects of a type that are no workloads, and that a sync would change.
type DependencyCount struct {
	// type is the kind of the objects, or CustomResource for those of all kinds of custom resources that spec.include names.
	Type CountedType `json:"type"`
	// count is their number, at least 1.
	Count int32 `json:"count"`
}

// CountedType is the kind of objects beside workloads that a sync would change, or CustomResource for custom resources of every kind.
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
	// CountedCustomResource is a custom resource of any kind that spec.include names.
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
	// field is a JSON pointer (RFC 6901). An item of a list is named by its key, as in
	// /spec/template/spec/containers[name=web]/image.
	Field string `json:"field"`
	// managers are the field managers that changed it in the environment. slipstream is there when the environment's own
	// patches set the field: then it stays so, and is named because other fields of the workload have to be decided about.
	// +optional
	// +listType=atomic
	Managers []string `json:"managers,omitempty"`
}

// NotCopiedObject is an object of the source that workloads use and that the server does not copy.
type NotCopiedObject struct {
	// kind is Role, RoleBinding, ClusterRoleBinding or PersistentVolumeClaim.
	Kind string `json:"kind"`
	// name of the object in the source. * stands for all of a kind that the server may not list.
	Name string `json:"name"`
	// reason is GrantsRights (the server grants nobody rights), HoldsData (data is not copied) or Unreadable (the server may not
	// list the kind, so that it is not known what the target lacks).
	Reason NotCopiedReason `json:"reason"`
	// serviceAccounts are those of workloads to which the object grants rights in the source, at most 100. Absent unless the reason
	// is GrantsRights.
	// +optional
	// +listType=set
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
}

// NotCopiedReason is why an object is not copied.
//
// +enum
type NotCopiedReason string

const (
	// NotCopiedGrantsRights is an object of RBAC: the server has no right to grant rights.
	NotCopiedGrantsRights NotCopiedReason = "GrantsRights"
	// NotCopiedHoldsData is a claim of a volume.
	NotCopiedHoldsData NotCopiedReason = "HoldsData"
	// NotCopiedUnreadable is a kind that the server may not list.
	NotCopiedUnreadable NotCopiedReason = "Unreadable"
)

// WorkloadsReady counts the workloads that an environment holds.
type WorkloadsReady struct {
	// ready is the number of workloads that run as they should.
	Ready int32 `json:"ready"`
	// total is the number of workloads.
	Total int32 `json:"total"`
}

// AutomatedBy is the user who answers for what the server does by itself, as authenticated then. It asks for that user's
// permissions.
type AutomatedBy struct {
	// username is the Kubernetes user.
	Username string `json:"username"`
	// uid of the user, where the identity provider gives one.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// groups of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// time is when the user asked for it, or changed what it does.
	Time metav1.Time `json:"time"`
}

// EnvironmentEdit is a change of an environment's spec.
type EnvironmentEdit struct {
	// generation is the metadata.generation that the change has made.
	Generation int64 `json:"generation"`
	// actor is the user who made the change, as authenticated.
	Actor string `json:"actor"`
	// uid of the user, where the identity provider gives one.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// groups of the user.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
	// fields are those of the spec that were changed, such as autoSync. Empty for the creation of the environment.
	// +optional
	// +listType=set
	Fields []string `json:"fields,omitempty"`
}

// PendingEnvironmentRequest is a request about an environment that has not been carried out yet.
type PendingEnvironmentRequest struct {
	// id tells the request from others of the environment.
	ID string `json:"id"`
	// actor is the user who made it, as authenticated.
	Actor string `json:"actor"`
	// uid of the user, where the identity provider gives one.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// groups of the user. Secrets are copied for the request only while the user may read them, unless the catalog shares them.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
	// type is the subresource it was made at: Sync, Resolve or Rediscover.
	Type EnvironmentRequestType `json:"type"`
	// sync is what a request of the type Sync asks for.
	// +optional
	Sync *SyncRequestSpec `json:"sync,omitempty"`
	// resolve is what a request of the type Resolve asks for.
	// +optional
	Resolve *ConflictResolutionSpec `json:"resolve,omitempty"`
}

// EnvironmentRequestType is what a request asks for.
//
// +enum
type EnvironmentRequestType string

const (
	// EnvironmentRequestSync asks for a sync.
	EnvironmentRequestSync EnvironmentRequestType = "Sync"
	// EnvironmentRequestResolve asks for conflicts to be resolved.
	EnvironmentRequestResolve EnvironmentRequestType = "Resolve"
	// EnvironmentRequestRediscover asks for dependencies to be found anew.
	EnvironmentRequestRediscover EnvironmentRequestType = "Rediscover"
)
