// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WatchRule selects objects in its own namespace to mirror to a GitDestination.
type WatchRule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state.
	Spec WatchRuleSpec `json:"spec"`
	// status is the observed state. Only the server writes it.
	// +optional
	Status WatchRuleStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WatchRuleList is a list of WatchRules.
type WatchRuleList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []WatchRule `json:"items"`
}

// WatchRuleSpec selects the objects and their destination.
type WatchRuleSpec struct {
	// destinationRef names the GitDestination.
	DestinationRef ObjectReference `json:"destinationRef"`
	// objectSelector narrows the rules to objects with matching labels. Absent means every object. It has at most 500
	// labels, expressions and values.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`
	// rules select resource types; an object that any of them selects is mirrored. At least one is required. The list is
	// always applied as a whole. At most 100 rules, with at most 1000 entries of their lists and 1000 types in total; a
	// rule names as many types as it has groups, times its resources.
	// +listType=atomic
	Rules []ResourceRule `json:"rules"`
}

// ResourceRule selects resource types, and which of their changes reach Git, as the rules of an admission webhook do.
type ResourceRule struct {
	// name describes the rule, such as workloads: a DNS label that is unique in the list. Empty means no name, which any
	// number of rules may have.
	// +optional
	Name string `json:"name,omitempty"`
	// operations are the changes that are mirrored: CREATE, UPDATE, DELETE, or * for all. Empty means all. Without DELETE,
	// files are kept when their objects are deleted. At most 500.
	// +optional
	// +listType=set
	Operations []Operation `json:"operations,omitempty"`
	// apiGroups are the API groups: "" is the core group, * is every group. Empty means every group. At most 500.
	// +optional
	// +listType=set
	APIGroups []string `json:"apiGroups,omitempty"`
	// apiVersions are the versions in which objects are read. Empty or * means the version that the cluster prefers, so
	// that no object is mirrored twice. At most 500.
	// +optional
	// +listType=set
	APIVersions []string `json:"apiVersions,omitempty"`
	// resources are plurals such as deployments, * for every resource, or plural.group for short such as deployments.apps,
	// which names its group whatever apiGroups says. Subresources can be written as in admission webhooks: deployments/*
	// and */* include the resource itself, while deployments/scale alone selects no objects. Empty means the preset of
	// types that hold desired state: deployments, services, configmaps, secrets, roles and the like, but no pods, events
	// or leases. At most 500.
	// +optional
	// +listType=set
	Resources []string `json:"resources,omitempty"`
}

// Operation is a change of an object.
//
// +enum
type Operation string

const (
	// OperationAll means every operation.
	OperationAll Operation = "*"
	// OperationCreate is the creation of an object.
	OperationCreate Operation = "CREATE"
	// OperationUpdate is a change of an object.
	OperationUpdate Operation = "UPDATE"
	// OperationDelete is the removal of an object.
	OperationDelete Operation = "DELETE"
)

// WatchRuleStatus is the observed state of a rule.
type WatchRuleStatus struct {
	// observedGeneration is the metadata.generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready reports whether all selected objects are watched and mirrored to the folder of the destination;
	// AccessDenied, that the destination or its repository does not allow the rule.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// matchedResourceTypes are the types that the rule currently selects in the cluster, sorted by group, resource and
	// version. The list is always written as a whole.
	// +optional
	// +listType=atomic
	MatchedResourceTypes []ResourceType `json:"matchedResourceTypes,omitempty"`
	// editedBy is the user who last wrote the spec. Nothing that the rule selects is mirrored if that user may not read
	// it, until another user writes the spec. Absent if the user is not known: then no permissions are checked.
	// +optional
	EditedBy *AutomatedBy `json:"editedBy,omitempty"`
}

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterWatchRule selects cluster-scoped objects, and objects of many namespaces, to mirror to a GitDestination. The
// accessPolicies of the destination and of its GitRepoConfig must allow cluster rules.
type ClusterWatchRule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state.
	Spec ClusterWatchRuleSpec `json:"spec"`
	// status is the observed state. Only the server writes it.
	// +optional
	Status WatchRuleStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterWatchRuleList is a list of ClusterWatchRules.
type ClusterWatchRuleList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []ClusterWatchRule `json:"items"`
}

// ClusterWatchRuleSpec selects the objects and their destination.
type ClusterWatchRuleSpec struct {
	// destinationRef names the GitDestination and its namespace.
	DestinationRef NamespacedObjectReference `json:"destinationRef"`
	// rules select resource types; an object that any of them selects is mirrored. At least one is required. The list is
	// always applied as a whole. At most 100 rules, with at most 1000 entries of their lists and 1000 types in total; a
	// rule names as many types as it has groups, times its resources.
	// +listType=atomic
	Rules []ClusterResourceRule `json:"rules"`
}

// ClusterResourceRule selects resource types of one scope.
type ClusterResourceRule struct {
	ResourceRule `json:",inline"`
	// scope is Cluster for objects without a namespace, Namespaced for objects in namespaces. It is required.
	Scope ResourceScope `json:"scope"`
	// namespaceSelector matches the labels of the namespaces whose objects are mirrored; when a namespace starts or stops
	// matching, its objects are added or removed. It may only be set if scope is Namespaced. Absent means every namespace.
	// It has at most 500 labels, expressions and values.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// ResourceScope selects cluster-scoped or namespaced objects.
//
// +enum
type ResourceScope string

const (
	// ScopeCluster is for objects without a namespace.
	ScopeCluster ResourceScope = "Cluster"
	// ScopeNamespaced is for objects in namespaces.
	ScopeNamespaced ResourceScope = "Namespaced"
)
