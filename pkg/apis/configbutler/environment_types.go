// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Environment is a namespace that is built from an AppCatalog: it gets the catalog's workloads and copies of what they
// refer to, when somebody asks for it or as the catalog changes. What its workloads refer to is in
// EnvironmentDependencies, what was done and when in SyncStatuses.
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

// EnvironmentSpec says what an environment is built from, where, and when.
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

// IncludedObject names an object of the source that is copied.
type IncludedObject struct {
	APIVersion string
	Kind       string
	Name       string
}

// EnvironmentReference names an Environment in the namespace of the object that refers to it.
type EnvironmentReference struct {
	Name string
}

// EnvironmentType is how much of a catalog an environment holds, and who wins in it.
type EnvironmentType string

const (
	// EnvironmentShared holds all workloads of the catalog, which wins.
	EnvironmentShared EnvironmentType = "Shared"
	// EnvironmentBranch holds some workloads of the catalog, and what was changed by hand stays.
	EnvironmentBranch EnvironmentType = "Branch"
)

// DeletionPolicy is what becomes of what an environment wrote when it is deleted.
type DeletionPolicy string

const (
	// DeletionPolicyDelete removes it.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan leaves it as it is.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// Adaptation says what is changed in copies so that they do not act on production.
type Adaptation struct {
	Replicas      ReplicasPolicy
	CronJobs      CronJobsPolicy
	LoadBalancers LoadBalancersPolicy
	IngressHosts  IngressHosts
}

// ReplicasPolicy is how many replicas copies have.
type ReplicasPolicy string

const (
	// ReplicasOne is at most one.
	ReplicasOne ReplicasPolicy = "One"
	// ReplicasAsSource is as many as the catalog offers.
	ReplicasAsSource ReplicasPolicy = "AsSource"
)

// CronJobsPolicy is whether copied CronJobs run.
type CronJobsPolicy string

const (
	// CronJobsSuspend suspends them.
	CronJobsSuspend CronJobsPolicy = "Suspend"
	// CronJobsAsSource leaves them as the catalog offers them.
	CronJobsAsSource CronJobsPolicy = "AsSource"
)

// LoadBalancersPolicy is what becomes of copied Services of the type LoadBalancer.
type LoadBalancersPolicy string

const (
	// LoadBalancersClusterIP makes them Services of the type ClusterIP.
	LoadBalancersClusterIP LoadBalancersPolicy = "ClusterIP"
	// LoadBalancersAsSource leaves them what they are.
	LoadBalancersAsSource LoadBalancersPolicy = "AsSource"
)

// IngressHosts says what becomes of the hosts of Ingresses.
type IngressHosts struct {
	Type     IngressHostsType
	Template string
}

// IngressHostsType is what becomes of the hosts of Ingresses.
type IngressHostsType string

const (
	// IngressHostsTemplate makes new hosts by a template.
	IngressHostsTemplate IngressHostsType = "Template"
	// IngressHostsOmit does not copy Ingresses.
	IngressHostsOmit IngressHostsType = "Omit"
	// IngressHostsAsSource leaves hosts what they are.
	IngressHostsAsSource IngressHostsType = "AsSource"
)

// SyncWindow is a time that comes again and again, in which automatic syncs may, or may not, begin.
type SyncWindow struct {
	Name     string
	Kind     SyncWindowKind
	Schedule string
	Duration metav1.Duration
	TimeZone string
}

// SyncWindowKind is what a window does to automatic syncs.
type SyncWindowKind string

const (
	// SyncWindowAllow lets them begin while it is open.
	SyncWindowAllow SyncWindowKind = "Allow"
	// SyncWindowDeny keeps them from beginning while it is open.
	SyncWindowDeny SyncWindowKind = "Deny"
)
