// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EnvironmentStatus is the observed state of an environment.
type EnvironmentStatus struct {
	State                   string
	ObservedGeneration      int64
	Conditions              []metav1.Condition
	LatestCatalogSync       string
	LatestRevision          int64
	CatalogUID              types.UID
	AppliedCatalogSync      string
	AppliedRevision         int64
	LastCatalogSyncedAt     *metav1.Time
	ChangedWorkloadCount    int32
	ChangedWorkloads        []WorkloadChange
	LatestDependencySync    string
	LastDependencySyncedAt  *metav1.Time
	ChangedDependencies     []DependencyCount
	DismissedCatalogSync    string
	DismissedBy             string
	DismissedAt             *metav1.Time
	DismissedDependencySync string
	Dismissals              int32
	ActiveSyncs             []string
	Conflicts               []WorkloadConflict
	NotCopied               []NotCopiedObject
	WorkloadsReady          *WorkloadsReady
	LastError               *SyncError
	AutomatedBy             *AutomatedBy
	ExpiresAt               *metav1.Time
	History                 []CatalogRevision
	PendingEdits            []EnvironmentEdit
	PendingRequests         []PendingEnvironmentRequest
}

// WorkloadChange is a workload of an environment that differs from its catalog.
type WorkloadChange struct {
	Kind       WorkloadKind
	Name       string
	ChangeType ChangeType
}

// DependencyCount is the number of objects of a type other than workloads that a sync would change.
type DependencyCount struct {
	Type  CountedType
	Count int32
}

// CountedType is the kind of objects other than workloads that a sync would change, or CustomResource for custom
// resources of every kind.
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

// WorkloadConflict is a workload that was changed in the environment and in the catalog, in the same fields.
type WorkloadConflict struct {
	Kind   WorkloadKind
	Name   string
	Fields []FieldConflict
}

// FieldConflict is a field that was changed in the environment and in the catalog.
type FieldConflict struct {
	Field    string
	Managers []string
}

// NotCopiedObject is an object of the source that workloads use and that the server does not copy.
type NotCopiedObject struct {
	Kind            string
	Name            string
	Reason          NotCopiedReason
	ServiceAccounts []string
}

// NotCopiedReason is the reason why an object is not copied.
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
	Ready int32
	Total int32
}

// AutomatedBy is the user, as authenticated at the time, whose permissions apply to the automatic work of the server.
type AutomatedBy struct {
	Username string
	UID      types.UID
	Groups   []string
	Time     metav1.Time
}

// EnvironmentEdit is a change of an environment's spec.
type EnvironmentEdit struct {
	Generation int64
	Actor      string
	UID        types.UID
	Groups     []string
	Time       metav1.Time
	Fields     []string
}

// PendingEnvironmentRequest is a request about an environment that has not been carried out yet.
type PendingEnvironmentRequest struct {
	ID      string
	Actor   string
	UID     types.UID
	Groups  []string
	Time    metav1.Time
	Type    EnvironmentRequestType
	Sync    *SyncRequestSpec
	Resolve *ConflictResolutionSpec
}

// EnvironmentRequestType is the type of a request.
type EnvironmentRequestType string

const (
	// EnvironmentRequestSync requests a sync.
	EnvironmentRequestSync EnvironmentRequestType = "Sync"
	// EnvironmentRequestResolve resolves conflicts.
	EnvironmentRequestResolve EnvironmentRequestType = "Resolve"
	// EnvironmentRequestRediscover requests that dependencies are discovered again.
	EnvironmentRequestRediscover EnvironmentRequestType = "Rediscover"
)
