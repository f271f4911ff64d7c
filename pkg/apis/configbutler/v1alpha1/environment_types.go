// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=Sync,verb=create,subresource=sync,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.SyncRequest,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.SyncRequest
// +genclient:method=Diff,verb=get,subresource=diff,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.EnvironmentDiff
// +genclient:method=SecretDiff,verb=get,subresource=secretdiff,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.EnvironmentDiff
// +genclient:method=Dismiss,verb=create,subresource=dismiss,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Dismissal,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Dismissal
// +genclient:method=Undismiss,verb=create,subresource=undismiss,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Undismissal,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Undismissal
// +genclient:method=Resolve,verb=create,subresource=resolve,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.ConflictResolution,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.ConflictResolution
// +genclient:method=Rollback,verb=create,subresource=rollback,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Rollback,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Rollback
// +genclient:method=Rediscover,verb=create,subresource=rediscover,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Rediscovery,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Rediscovery
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Environment is a namespace that is built from an AppCatalog: it gets the catalog's workloads and copies of the objects
// that they refer to, on request or automatically when the catalog changes. The referenced objects are recorded in
// EnvironmentDependencies, the syncs in SyncStatuses.
type Environment struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name has at most 63 characters and no dots, because the names and labels
	// of records contain it. The namespace is that of the environment's users; it may, but need not, be the target
	// namespace.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state.
	Spec EnvironmentSpec `json:"spec"`
	// status is the observed state. Only the server writes it.
	// +optional
	Status EnvironmentStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentList is a list of Environments.
type EnvironmentList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []Environment `json:"items"`
}

// EnvironmentSpec defines from which catalog, in which namespace and when an environment is built.
type EnvironmentSpec struct {
	// catalogRef names the AppCatalog that the environment is built from. A catalog in another namespace must allow this
	// namespace in its accessPolicy. It is immutable: the applied revisions are those of one catalog.
	CatalogRef ObjectReference `json:"catalogRef"`
	// targetNamespace is the namespace that is built. It must not be the source of a catalog, nor the target of another
	// environment; a Branch with a base names the target of its base. It is immutable: otherwise written objects would be
	// left behind.
	TargetNamespace string `json:"targetNamespace"`
	// createNamespace creates targetNamespace if it does not exist. Defaults to false: a sync fails then.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// type selects which workloads the environment holds, and which side takes precedence if it was changed by hand.
	// Shared: all workloads of the catalog, and the catalog takes precedence in the fields that it sets. Branch: the
	// workloads in branchWorkloads, and changes by hand are kept; if the catalog changes the same field, that workload is
	// not written until a user resolves the conflict. It is immutable. Defaults to Shared.
	// +optional
	// +default=ref(EnvironmentShared)
	Type EnvironmentType `json:"type,omitempty"`
	// baseEnvironmentRef names the Environment whose namespace a Branch shares, of the same catalog and in this
	// namespace. Both name the same targetNamespace, and the base does not write the workloads in branchWorkloads. Absent
	// means that the Branch has its own targetNamespace. It must be absent unless type is Branch, and is immutable.
	// +optional
	BaseEnvironmentRef *EnvironmentReference `json:"baseEnvironmentRef,omitempty"`
	// branchWorkloads are the workloads of the catalog that a Branch holds. At least one is required if type is Branch,
	// none is allowed otherwise. At most 1000.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	BranchWorkloads []WorkloadReference `json:"branchWorkloads,omitempty"`
	// autoSync applies changes of the catalog, and of the objects that workloads refer to, automatically. Otherwise they
	// are shown, and applied on request. Defaults to false.
	// +optional
	AutoSync bool `json:"autoSync,omitempty"`
	// shadow only plans and records automatic syncs, without writing. Requested syncs are carried out. Defaults to false.
	// +optional
	Shadow bool `json:"shadow,omitempty"`
	// patches are applied to the catalog's workloads in the order of the list, after the changes of adapt, so that
	// patches take precedence. At most 100.
	// +optional
	// +listType=atomic
	Patches []Patch `json:"patches,omitempty"`
	// include names further objects of the source to copy, which the application reads and writes through the Kubernetes
	// API. They are namespaced ConfigMaps, Secrets and custom resources. The user who names one must be allowed to get it
	// in the source, including Secrets that the catalog shares, and so must the user who syncs the environment. A change
	// of a ConfigMap or a Secret is noticed; a change of a custom resource is copied with the next sync of workloads. At
	// most 100.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +listMapKey=name
	Include []IncludedObject `json:"include,omitempty"`
	// adapt configures changes to copies so that they do not act on production.
	// +optional
	Adapt Adaptation `json:"adapt,omitempty"`
	// pinnedRevision keeps the environment at a revision in status.history. While it is set, automatic syncs wait. The
	// subresource rollback sets it.
	// +optional
	PinnedRevision *int64 `json:"pinnedRevision,omitempty"`
	// historyLimit is the number of revisions that a rollback can return to, 1 to 100. Defaults to 10.
	// +optional
	// +default=10
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
	// syncWindows define when syncs may begin, automatic and requested ones: while a window of kind Allow is open, or at any time if there is
	// none, but never while a window of kind Deny is open. Requests with force begin at any time. At most 50.
	// +optional
	// +listType=map
	// +listMapKey=name
	SyncWindows []SyncWindow `json:"syncWindows,omitempty"`
	// ttl is the lifetime of the environment from its creation, as a duration such as 72h. It is then deleted according
	// to deletionPolicy. At least 1m, at most 8760h (one year). Absent means no limit.
	// +optional
	TTL *metav1.Duration `json:"ttl,omitempty"`
	// deletionPolicy defines what happens to the written objects when the environment is deleted. Delete: they are
	// deleted, and the namespace with them if the environment created it and it contains nothing else; objects of others
	// and the volumes of StatefulSets are kept. The environment exists until the Pods of its workloads have terminated.
	// Orphan: they are kept unchanged, with their labels; no other environment adopts them. Defaults to Delete: the
	// objects can be recreated from the catalog, while unattended copies would keep running and keep production's Secrets
	// readable.
	// +optional
	// +default=ref(DeletionPolicyDelete)
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// serviceAccountName is the ServiceAccount in this namespace whose permissions apply to automatic syncs. If empty,
	// those of the user who last enabled them apply, see status.automatedBy.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// IncludedObject names an object of the source to copy.
type IncludedObject struct {
	// apiVersion is v1 for ConfigMaps and Secrets, and that of a custom resource otherwise, such as example.com/v1. API groups of
	// Kubernetes (without a dot, or that end with .k8s.io), of OpenShift and Rancher (openshift.io, cattle.io, and those that end with
	// .openshift.io or .cattle.io) and configbutler.ai are not allowed.
	APIVersion string `json:"apiVersion"`
	// kind of the object, such as ConfigMap. The resource of a custom kind must be its plural in lower case.
	Kind string `json:"kind"`
	// name of the object.
	Name string `json:"name"`
}

// EnvironmentReference names an Environment in the namespace of the object that refers to it.
//
// +structType=atomic
type EnvironmentReference struct {
	// name of the Environment.
	Name string `json:"name"`
}

// EnvironmentType selects which workloads of a catalog an environment holds, and which side takes precedence.
//
// +enum
type EnvironmentType string

const (
	// EnvironmentShared holds all workloads of the catalog, which takes precedence.
	EnvironmentShared EnvironmentType = "Shared"
	// EnvironmentBranch holds some workloads of the catalog, and keeps changes by hand.
	EnvironmentBranch EnvironmentType = "Branch"
)

// DeletionPolicy defines what happens to the written objects when an environment is deleted.
//
// +enum
type DeletionPolicy string

const (
	// DeletionPolicyDelete deletes them.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan keeps them unchanged.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// Adaptation configures changes to copies so that they do not act on production.
type Adaptation struct {
	// replicas of Deployments, StatefulSets and ReplicaSets. One: at most one; zero stays zero. AsSource: as in the
	// catalog. Defaults to One.
	// +optional
	// +default=ref(ReplicasOne)
	Replicas ReplicasPolicy `json:"replicas,omitempty"`
	// cronJobs selects whether CronJobs run. Suspend: they are suspended. AsSource: as in the catalog. Defaults to
	// Suspend.
	// +optional
	// +default=ref(CronJobsSuspend)
	CronJobs CronJobsPolicy `json:"cronJobs,omitempty"`
	// loadBalancers selects the type of copied Services of type LoadBalancer. ClusterIP: they are reachable only within
	// the cluster. AsSource: they stay of type LoadBalancer. Defaults to ClusterIP.
	// +optional
	// +default=ref(LoadBalancersClusterIP)
	LoadBalancers LoadBalancersPolicy `json:"loadBalancers,omitempty"`
	// ingressHosts configures the hosts of Ingresses, and of HTTPRoutes, GRPCRoutes and Gateways of the Gateway API.
	// +optional
	IngressHosts IngressHosts `json:"ingressHosts,omitempty"`
}

// ReplicasPolicy selects the number of replicas of copies.
//
// +enum
type ReplicasPolicy string

const (
	// ReplicasOne sets at most one replica.
	ReplicasOne ReplicasPolicy = "One"
	// ReplicasAsSource keeps the number of replicas in the catalog.
	ReplicasAsSource ReplicasPolicy = "AsSource"
)

// CronJobsPolicy selects whether copied CronJobs run.
//
// +enum
type CronJobsPolicy string

const (
	// CronJobsSuspend suspends them.
	CronJobsSuspend CronJobsPolicy = "Suspend"
	// CronJobsAsSource keeps them as in the catalog.
	CronJobsAsSource CronJobsPolicy = "AsSource"
)

// LoadBalancersPolicy selects the type of copied Services of type LoadBalancer.
//
// +enum
type LoadBalancersPolicy string

const (
	// LoadBalancersClusterIP changes them to type ClusterIP.
	LoadBalancersClusterIP LoadBalancersPolicy = "ClusterIP"
	// LoadBalancersAsSource keeps their type.
	LoadBalancersAsSource LoadBalancersPolicy = "AsSource"
)

// IngressHosts configures the hosts of Ingresses, and of HTTPRoutes, GRPCRoutes and Gateways of the Gateway API.
type IngressHosts struct {
	// type is Template (each host is replaced by template), Omit (neither Ingresses nor objects of the Gateway API are
	// copied: without a host, a rule would match requests for any host, including production's) or AsSource (hosts are
	// kept, for clusters in which production is not reached by them). Defaults to Omit.
	// +optional
	// +default=ref(IngressHostsOmit)
	Type IngressHostsType `json:"type,omitempty"`
	// template is a host name in which {host} is replaced by the host of the source, {label} by the part of that host
	// before its first dot, {environment} by the name of the environment, and {namespace} by its targetNamespace, such as
	// {label}.{environment}.dev.example.com. A rule of an Ingress and a route without a host are not copied. It is
	// required if type is Template and must be absent otherwise.
	// +optional
	Template string `json:"template,omitempty"`
}

// Copied reports whether Ingresses and objects of the Gateway API are copied.
func (h IngressHosts) Copied() bool { return h.Type != "" && h.Type != IngressHostsOmit }

// IngressHostsType selects how the hosts of Ingresses and of objects of the Gateway API are changed.
//
// +enum
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
	// name identifies the window among those of the environment, and is shown if the window delays a sync. A lower case
	// RFC 1123 label, such as nightly.
	Name string `json:"name"`
	// kind is Allow (syncs may begin while the window is open) or Deny (they may not).
	Kind SyncWindowKind `json:"kind"`
	// schedule defines when the window opens, in the cron syntax of CronJobs with five fields, such as 0 22 * * 1-5 for
	// 22:00 from Monday to Friday, or as @daily and the like. At most 512 bytes.
	Schedule string `json:"schedule"`
	// duration is how long the window stays open each time, as a duration such as 8h. At least 1m, at most 744h (31
	// days). It is elapsed time: a window of 8h is open for 8 hours even if clocks change meanwhile.
	Duration metav1.Duration `json:"duration"`
	// timeZone is the time zone of the schedule, by its name in the time zone database, such as Europe/Berlin. A time
	// that is skipped when daylight saving time begins counts right after the change; one that occurs twice counts twice.
	// Defaults to UTC.
	// +optional
	// +default="UTC"
	TimeZone string `json:"timeZone,omitempty"`
}

// SyncWindowKind is the effect of a window on automatic syncs.
//
// +enum
type SyncWindowKind string

const (
	// SyncWindowAllow allows them to begin while it is open.
	SyncWindowAllow SyncWindowKind = "Allow"
	// SyncWindowDeny prevents them from beginning while it is open.
	SyncWindowDeny SyncWindowKind = "Deny"
)
