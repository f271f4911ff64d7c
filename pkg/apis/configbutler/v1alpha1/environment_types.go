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

// Environment is a namespace that is built from an AppCatalog: it gets the catalog's workloads and copies of what they
// refer to, when somebody asks for it or as the catalog changes. What its workloads refer to is in
// EnvironmentDependencies, what was done and when in SyncStatuses.
type Environment struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name has at most 63 characters and no dots, because the names and the
	// labels of records are made of it. The namespace is that of the people whose environment it is; it may be, but need
	// not be, the one that is built.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the user wants.
	Spec EnvironmentSpec `json:"spec"`
	// status is what the server found. Only the server writes it.
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

// EnvironmentSpec says what an environment is built from, where, and when.
type EnvironmentSpec struct {
	// catalogRef names the AppCatalog that the environment is built from. One in another namespace must admit this
	// namespace in its accessPolicy. It cannot be changed: the revisions that were applied are those of one catalog.
	CatalogRef ObjectReference `json:"catalogRef"`
	// targetNamespace is the namespace that is built. It must not be the source of a catalog, nor the target of another
	// environment; a Branch names the target of its base. It cannot be changed: what was written would be left behind.
	TargetNamespace string `json:"targetNamespace"`
	// createNamespace has targetNamespace created when it does not exist. Defaults to false: a sync fails then.
	// +optional
	CreateNamespace bool `json:"createNamespace,omitempty"`
	// type says how much of the catalog the environment holds, and who wins where the environment was changed by hand.
	// Shared: all workloads of the catalog, and the catalog wins in its own fields. Branch: the workloads in
	// branchWorkloads, and what was changed by hand stays; when the catalog changes the same field, nothing is written for
	// that workload until somebody decides. It cannot be changed. Defaults to Shared.
	// +optional
	// +default=ref(EnvironmentShared)
	Type EnvironmentType `json:"type,omitempty"`
	// baseEnvironmentRef names the Environment that a Branch lives in, of the same catalog and in this namespace. Both
	// name the same targetNamespace, and the base leaves the workloads in branchWorkloads alone. Absent means that the
	// Branch has its targetNamespace to itself. It must be absent unless type is Branch, and cannot be changed.
	// +optional
	BaseEnvironmentRef *EnvironmentReference `json:"baseEnvironmentRef,omitempty"`
	// branchWorkloads are the workloads of the catalog that a Branch holds. At least one is required when type is Branch,
	// none is allowed otherwise. At most 1000.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	BranchWorkloads []WorkloadReference `json:"branchWorkloads,omitempty"`
	// autoSync has changes of the catalog, and of what workloads refer to, applied as they come. Otherwise they are shown,
	// and somebody asks for them. Defaults to false.
	// +optional
	AutoSync bool `json:"autoSync,omitempty"`
	// shadow has automatic syncs planned and recorded only. Nothing is written. What people ask for is done all the same.
	// Defaults to false.
	// +optional
	Shadow bool `json:"shadow,omitempty"`
	// patches are laid over what the catalog offers, one after another in the order of the list, after what adapt
	// changes: so a patch has the last word. At most 100.
	// +optional
	// +listType=atomic
	Patches []Patch `json:"patches,omitempty"`
	// include are objects of the source that are copied beside what workloads refer to: what the application reads and writes through
	// the API of the cluster. They are ConfigMaps, Secrets and custom resources in the namespace. Who names one must be allowed to get
	// it there, Secrets also where the catalog shares them, and so must who syncs the environment. A change of a ConfigMap or a
	// Secret is noticed; that of a custom resource comes with the next sync of workloads. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +listMapKey=name
	Include []IncludedObject `json:"include,omitempty"`
	// adapt says what is changed in copies so that they do not act on production.
	// +optional
	Adapt Adaptation `json:"adapt,omitempty"`
	// pinnedRevision keeps the environment at what it was at a revision listed in status.history. While it is set,
	// automatic syncs wait. The subresource rollback sets it.
	// +optional
	PinnedRevision *int64 `json:"pinnedRevision,omitempty"`
	// historyLimit is how many revisions can be gone back to, 1 to 100. Defaults to 10.
	// +optional
	// +default=10
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
	// syncWindows say when automatic syncs may begin: while a window that allows them is open, or at any time if there is
	// none such, but never while one that denies them is open. Those that people ask for with force begin at any time.
	// At most 50.
	// +optional
	// +listType=map
	// +listMapKey=name
	SyncWindows []SyncWindow `json:"syncWindows,omitempty"`
	// ttl is how long the environment lives, from its creation on, as a duration such as 72h. Then it is deleted, as
	// deletionPolicy says. At least 1m, at most 8760h, which is a year. Absent means that it stays.
	// +optional
	TTL *metav1.Duration `json:"ttl,omitempty"`
	// deletionPolicy says what becomes of what the environment wrote when it is deleted. Delete: it goes, and the
	// namespace with it if the environment created it and nothing else is in it; what others put there stays, and so do
	// the volumes of StatefulSets. The environment is there until the Pods of its workloads have ended. Orphan: it stays as
	// it is, with its labels; no other environment takes it for its own. Defaults to Delete: what the environment wrote can be
	// made again from the catalog, while copies that nobody looks after keep running, and keep production's Secrets readable.
	// +optional
	// +default=ref(DeletionPolicyDelete)
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// serviceAccountName is the ServiceAccount in this namespace whose permissions automatic syncs need. Empty means those
	// of the user who last turned them on, as status.automatedBy says.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// IncludedObject names an object of the source that is copied.
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

// EnvironmentType is how much of a catalog an environment holds, and who wins in it.
//
// +enum
type EnvironmentType string

const (
	// EnvironmentShared holds all workloads of the catalog, which wins.
	EnvironmentShared EnvironmentType = "Shared"
	// EnvironmentBranch holds some workloads of the catalog, and what was changed by hand stays.
	EnvironmentBranch EnvironmentType = "Branch"
)

// DeletionPolicy is what becomes of what an environment wrote when it is deleted.
//
// +enum
type DeletionPolicy string

const (
	// DeletionPolicyDelete removes it.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan leaves it as it is.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// Adaptation says what is changed in copies so that they do not act on production.
type Adaptation struct {
	// replicas of Deployments, StatefulSets and ReplicaSets. One: at most one, so that none stays none. AsSource: as many
	// as the catalog offers. Defaults to One.
	// +optional
	// +default=ref(ReplicasOne)
	Replicas ReplicasPolicy `json:"replicas,omitempty"`
	// cronJobs says whether CronJobs run. Suspend: they do not. AsSource: as the catalog offers. Defaults to Suspend.
	// +optional
	// +default=ref(CronJobsSuspend)
	CronJobs CronJobsPolicy `json:"cronJobs,omitempty"`
	// loadBalancers says what becomes of Services of the type LoadBalancer. ClusterIP: they are reached from within the
	// cluster only. AsSource: they stay what they are. Defaults to ClusterIP.
	// +optional
	// +default=ref(LoadBalancersClusterIP)
	LoadBalancers LoadBalancersPolicy `json:"loadBalancers,omitempty"`
	// ingressHosts says what becomes of the hosts of Ingresses, and of HTTPRoutes, GRPCRoutes and Gateways of the Gateway API.
	// +optional
	IngressHosts IngressHosts `json:"ingressHosts,omitempty"`
}

// ReplicasPolicy is how many replicas copies have.
//
// +enum
type ReplicasPolicy string

const (
	// ReplicasOne is at most one.
	ReplicasOne ReplicasPolicy = "One"
	// ReplicasAsSource is as many as the catalog offers.
	ReplicasAsSource ReplicasPolicy = "AsSource"
)

// CronJobsPolicy is whether copied CronJobs run.
//
// +enum
type CronJobsPolicy string

const (
	// CronJobsSuspend suspends them.
	CronJobsSuspend CronJobsPolicy = "Suspend"
	// CronJobsAsSource leaves them as the catalog offers them.
	CronJobsAsSource CronJobsPolicy = "AsSource"
)

// LoadBalancersPolicy is what becomes of copied Services of the type LoadBalancer.
//
// +enum
type LoadBalancersPolicy string

const (
	// LoadBalancersClusterIP makes them Services of the type ClusterIP.
	LoadBalancersClusterIP LoadBalancersPolicy = "ClusterIP"
	// LoadBalancersAsSource leaves them what they are.
	LoadBalancersAsSource LoadBalancersPolicy = "AsSource"
)

// IngressHosts says what becomes of the hosts of Ingresses, and of HTTPRoutes, GRPCRoutes and Gateways of the Gateway API.
type IngressHosts struct {
	// type is Template (each host becomes what template says), Omit (Ingresses are not copied: without its host, a rule
	// would match requests for any host, production's among them; nor is anything of the Gateway API) or AsSource (hosts stay
	// what they are, for clusters in which production is not reached by them). Defaults to Omit.
	// +optional
	// +default=ref(IngressHostsOmit)
	Type IngressHostsType `json:"type,omitempty"`
	// template is a host name in which {host} stands for the host of the source, {label} for what is before that host's
	// first dot, {environment} for the name of the environment, and {namespace} for its targetNamespace, such as
	// {label}.{environment}.dev.example.com. A rule of an Ingress and a route without a host are not copied. It is required when
	// type is Template and must be absent otherwise.
	// +optional
	Template string `json:"template,omitempty"`
}

// Copied reports whether Ingresses and what is of the Gateway API are copied.
func (h IngressHosts) Copied() bool { return h.Type != "" && h.Type != IngressHostsOmit }

// IngressHostsType is what becomes of the hosts of Ingresses and of what is of the Gateway API.
//
// +enum
type IngressHostsType string

const (
	// IngressHostsTemplate makes new hosts by a template.
	IngressHostsTemplate IngressHostsType = "Template"
	// IngressHostsOmit copies no Ingresses, and nothing of the Gateway API.
	IngressHostsOmit IngressHostsType = "Omit"
	// IngressHostsAsSource leaves hosts what they are.
	IngressHostsAsSource IngressHostsType = "AsSource"
)

// SyncWindow is a time that comes again and again, in which automatic syncs may, or may not, begin.
type SyncWindow struct {
	// name tells the window from others of the environment, and is shown when it holds a sync back. A lower case RFC 1123
	// label, such as nightly.
	Name string `json:"name"`
	// kind is Allow (automatic syncs may begin while the window is open) or Deny (they may not).
	Kind SyncWindowKind `json:"kind"`
	// schedule says when the window opens, as five fields in the syntax of cron that CronJobs have, such as 0 22 * * 1-5
	// for ten in the evening from Monday to Friday, or as @daily and the like.
	Schedule string `json:"schedule"`
	// duration is how long the window stays open each time, as a duration such as 8h. At least 1m, at most 744h, which is
	// 31 days. Time that passes counts, not what clocks show: a window of 8h is open for 8 hours also in a night in which
	// clocks are changed.
	Duration metav1.Duration `json:"duration"`
	// timeZone is that of the schedule, by the name it has in the time zone database, such as Europe/Berlin. A time that
	// clocks skip, as daylight saving time begins, comes when they have done so; one that they show twice comes twice.
	// Defaults to UTC.
	// +optional
	// +default="UTC"
	TimeZone string `json:"timeZone,omitempty"`
}

// SyncWindowKind is what a window does to automatic syncs.
//
// +enum
type SyncWindowKind string

const (
	// SyncWindowAllow lets them begin while it is open.
	SyncWindowAllow SyncWindowKind = "Allow"
	// SyncWindowDeny keeps them from beginning while it is open.
	SyncWindowDeny SyncWindowKind = "Deny"
)
