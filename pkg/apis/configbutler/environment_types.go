// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Environment is a namespace that is built from an AppCatalog: it gets the catalog's workloads and copies of the objects
// that they refer to, on request or automatically when the catalog changes. The referenced objects are recorded in
// EnvironmentDependencies, the syncs in SyncStatuses.
type Environment struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   EnvironmentSpec
	Status EnvironmentStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentList is a list of Environments.
type EnvironmentList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []Environment
}

// EnvironmentSpec defines from which catalog, in which namespace and when an environment is built.
type EnvironmentSpec struct {
	CatalogRef         ObjectReference
	TargetNamespace    string
	CreateNamespace    bool
	Type               EnvironmentType
	BaseEnvironmentRef *EnvironmentReference
	BranchWorkloads    []WorkloadReference
	AutoSync           bool
	Shadow             bool
	Patches            []Patch
	Include            []IncludedObject
	Adapt              Adaptation
	PinnedRevision     *int64
	HistoryLimit       *int32
	SyncWindows        []SyncWindow
	TTL                *metav1.Duration
	DeletionPolicy     DeletionPolicy
	ServiceAccountName string
}

// IncludedObject names an object of the source to copy.
type IncludedObject struct {
	APIVersion string
	Kind       string
	Name       string
}

// EnvironmentReference names an Environment in the namespace of the object that refers to it.
type EnvironmentReference struct {
	Name string
}

// EnvironmentType selects which workloads of a catalog an environment holds, and which side takes precedence.
type EnvironmentType string

const (
	// EnvironmentShared holds all workloads of the catalog, which takes precedence.
	EnvironmentShared EnvironmentType = "Shared"
	// EnvironmentBranch holds some workloads of the catalog, and keeps changes by hand.
	EnvironmentBranch EnvironmentType = "Branch"
)

// DeletionPolicy defines what happens to the written objects when an environment is deleted.
type DeletionPolicy string

const (
	// DeletionPolicyDelete deletes them.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan keeps them unchanged.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// Adaptation configures changes to copies so that they do not act on production.
type Adaptation struct {
	Replicas      ReplicasPolicy
	CronJobs      CronJobsPolicy
	LoadBalancers LoadBalancersPolicy
	IngressHosts  IngressHosts
}

// ReplicasPolicy selects the number of replicas of copies.
type ReplicasPolicy string

const (
	// ReplicasOne sets at most one replica.
	ReplicasOne ReplicasPolicy = "One"
	// ReplicasAsSource keeps the number of replicas in the catalog.
	ReplicasAsSource ReplicasPolicy = "AsSource"
)

// CronJobsPolicy selects whether copied CronJobs run.
type CronJobsPolicy string

const (
	// CronJobsSuspend suspends them.
	CronJobsSuspend CronJobsPolicy = "Suspend"
	// CronJobsAsSource keeps them as in the catalog.
	CronJobsAsSource CronJobsPolicy = "AsSource"
)

// LoadBalancersPolicy selects the type of copied Services of type LoadBalancer.
type LoadBalancersPolicy string

const (
	// LoadBalancersClusterIP changes them to type ClusterIP.
	LoadBalancersClusterIP LoadBalancersPolicy = "ClusterIP"
	// LoadBalancersAsSource keeps their type.
	LoadBalancersAsSource LoadBalancersPolicy = "AsSource"
)

// IngressHosts configures the hosts of Ingresses, and of HTTPRoutes, GRPCRoutes and Gateways of the Gateway API.
type IngressHosts struct {
	Type     IngressHostsType
	Template string
}

// IngressHostsType selects how the hosts of Ingresses and of objects of the Gateway API are changed.
type IngressHostsType string

const (
	// IngressHostsTemplate replaces hosts by a template.
	IngressHostsTemplate IngressHostsType = "Template"
	// IngressHostsOmit copies neither Ingresses nor objects of the Gateway API.
	IngressHostsOmit IngressHostsType = "Omit"
	// IngressHostsAsSource keeps hosts.
	IngressHostsAsSource IngressHostsType = "AsSource"
)

// SyncWindow is a recurring time window in which automatic syncs may, or may not, begin.
type SyncWindow struct {
	Name     string
	Kind     SyncWindowKind
	Schedule string
	Duration metav1.Duration
	TimeZone string
}

// SyncWindowKind is the effect of a window on automatic syncs.
type SyncWindowKind string

const (
	// SyncWindowAllow allows them to begin while it is open.
	SyncWindowAllow SyncWindowKind = "Allow"
	// SyncWindowDeny prevents them from beginning while it is open.
	SyncWindowDeny SyncWindowKind = "Deny"
)
