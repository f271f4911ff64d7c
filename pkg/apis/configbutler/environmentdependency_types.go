// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentDependency records an object that an environment's workloads refer to, and that is copied for them. Its name
// is <environment>.<type in lower case>.<name of the copy>, and it is deleted with the environment. The server writes it;
// it can be read and deleted, but not created or changed.
type EnvironmentDependency struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status EnvironmentDependencyRecord
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentDependencyList is a list of EnvironmentDependencies.
type EnvironmentDependencyList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []EnvironmentDependency
}

// EnvironmentDependencyRecord is an object that workloads refer to, with its source and its copy.
type EnvironmentDependencyRecord struct {
	Environment      string
	Type             DependencyType
	Source           NamespacedObjectReference
	Target           NamespacedObjectReference
	Hash             string
	SeenHash         string
	Keys             []string
	ReferredBy       []DependencyReference
	Optional         bool
	ByPatches        bool
	Missing          bool
	LastDiscoveredAt *metav1.Time
}

// DependencyType is a kind of objects that workloads refer to.
type DependencyType string

const (
	// DependencyConfigMap is a ConfigMap.
	DependencyConfigMap DependencyType = "ConfigMap"
	// DependencySecret is a Secret.
	DependencySecret DependencyType = "Secret"
	// DependencyService is a Service that selects a workload's Pods.
	DependencyService DependencyType = "Service"
	// DependencyServiceAccount is a ServiceAccount that a workload's Pods run as.
	DependencyServiceAccount DependencyType = "ServiceAccount"
)

// DependencyReference is an object, and its field, that refers to a dependency.
type DependencyReference struct {
	Kind  string
	Name  string
	Field string
}
