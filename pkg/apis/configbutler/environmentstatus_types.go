// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EnvironmentStatus is what the server found out about an environment.
type EnvironmentStatus struct {
	ObservedGeneration     int64
	Conditions             []metav1.Condition
	LatestCatalogSync      string
	LatestRevision         int64
	AppliedCatalogSync     string
	AppliedRevision        int64
	LastCatalogSyncedAt    *metav1.Time
	ChangedWorkloadCount   int32
	ChangedWorkloads       []WorkloadChange
	LatestDependencySync   string
	LastDependencySyncedAt *metav1.Time
	ChangedDependencies    []DependencyCount
	DismissedCatalogSync   string
	Dismissals             int32
	ActiveSyncs            []string
	Conflicts              []WorkloadConflict
	WorkloadsReady         *WorkloadsReady
	LastError              *SyncError
	AutomatedBy            *AutomatedBy
	ExpiresAt              *metav1.Time
	History                []CatalogRevision
	PendingEdits           []EnvironmentEdit
	PendingRequests        []PendingEnvironmentRequest
}

// WorkloadChange is a workload in which an environment differs from what its catalog offers.
type WorkloadChange struct {
	Kind       WorkloadKind
	Name       string
	ChangeType ChangeType
}

// DependencyCount counts dependencies of a type that have changed in the source.
type DependencyCount struct {
	Type  DependencyType
	Count int32
}

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

// WorkloadsReady counts the workloads that an environment holds.
type WorkloadsReady struct {
	Ready int32
	Total int32
}

// AutomatedBy is the user who answers for what the server does by itself, as authenticated then. It asks for that user's
// permissions.
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

// EnvironmentRequestType is what a request asks for.
type EnvironmentRequestType string

const (
	// EnvironmentRequestSync asks for a sync.
	EnvironmentRequestSync EnvironmentRequestType = "Sync"
	// EnvironmentRequestResolve asks for conflicts to be resolved.
	EnvironmentRequestResolve EnvironmentRequestType = "Resolve"
	// EnvironmentRequestRediscover asks for dependencies to be found anew.
	EnvironmentRequestRediscover EnvironmentRequestType = "Rediscover"
)
