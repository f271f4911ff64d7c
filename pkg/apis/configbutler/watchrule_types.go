// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WatchRule selects objects in its own namespace to mirror to a GitDestination.
type WatchRule struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   WatchRuleSpec
	Status WatchRuleStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// WatchRuleList is a list of WatchRules.
type WatchRuleList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []WatchRule
}

// WatchRuleSpec selects the objects and their destination.
type WatchRuleSpec struct {
	DestinationRef ObjectReference
	ObjectSelector *metav1.LabelSelector
	Rules          []ResourceRule
}

// ResourceRule selects resource types, and which of their changes reach Git, as the rules of an admission webhook do.
type ResourceRule struct {
	Name        string
	Operations  []Operation
	APIGroups   []string
	APIVersions []string
	Resources   []string
}

// Operation is a change of an object.
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
	ObservedGeneration   int64
	Conditions           []metav1.Condition
	MatchedResourceTypes []ResourceType
	EditedBy             *AutomatedBy
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterWatchRule selects cluster-scoped objects, and objects of many namespaces, to mirror to a GitDestination. The
// accessPolicies of the destination and of its GitRepoConfig must allow cluster rules.
type ClusterWatchRule struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   ClusterWatchRuleSpec
	Status WatchRuleStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterWatchRuleList is a list of ClusterWatchRules.
type ClusterWatchRuleList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []ClusterWatchRule
}

// ClusterWatchRuleSpec selects the objects and their destination.
type ClusterWatchRuleSpec struct {
	DestinationRef NamespacedObjectReference
	Rules          []ClusterResourceRule
}

// ClusterResourceRule selects resource types of one scope.
type ClusterResourceRule struct {
	ResourceRule
	Scope             ResourceScope
	NamespaceSelector *metav1.LabelSelector
}

// ResourceScope selects cluster-scoped or namespaced objects.
type ResourceScope string

const (
	// ScopeCluster is for objects without a namespace.
	ScopeCluster ResourceScope = "Cluster"
	// ScopeNamespaced is for objects in namespaces.
	ScopeNamespaced ResourceScope = "Namespaced"
)
