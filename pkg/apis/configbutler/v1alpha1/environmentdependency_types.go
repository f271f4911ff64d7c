// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:onlyVerbs=get,list,watch,delete,deleteCollection
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentDependency records an object that an environment's workloads refer to, and that is copied for them. Its name
// is <environment>.<type in lower case>.<name of the copy>, and it goes when the environment goes. The server writes it;
// it can be read and deleted, but not created or changed.
type EnvironmentDependency struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the record.
	// +optional
	Status EnvironmentDependencyRecord `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentDependencyList is a list of EnvironmentDependencies.
type EnvironmentDependencyList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []EnvironmentDependency `json:"items"`
}

// EnvironmentDependencyRecord is an object that workloads refer to, where it is copied from and where to.
type EnvironmentDependencyRecord struct {
	// environment is the name of the Environment, in this namespace.
	Environment string `json:"environment"`
	// type is ConfigMap, Secret, Service or ServiceAccount.
	Type DependencyType `json:"type"`
	// source is the object that is copied.
	Source NamespacedObjectReference `json:"source"`
	// target is the copy.
	Target NamespacedObjectReference `json:"target"`
	// hash tells versions of what was copied apart. It is equal when the content is. That of a Secret is made with a key
	// of the server, so that nobody can find the content out by trying.
	// +optional
	Hash string `json:"hash,omitempty"`
	// seenHash is the hash of the newest version in the source that a SyncStatus of the type Dependency tells of: removed,
	// when it tells that the source has it no longer. Empty when none tells of another version than the one that was copied.
	// +optional
	SeenHash string `json:"seenHash,omitempty"`
	// keys are the names of what a ConfigMap or Secret holds, never the values. At most 1000.
	// +optional
	// +listType=set
	Keys []string `json:"keys,omitempty"`
	// referredBy are the objects of the environment that refer to it, and where. At most 1000.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +listMapKey=field
	ReferredBy []DependencyReference `json:"referredBy,omitempty"`
	// optional says that workloads also run without it.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// byPatches says that only patches of the environment refer to it, as far as is known. The user who asks for a refresh
	// must be allowed to read it in the source.
	// +optional
	ByPatches bool `json:"byPatches,omitempty"`
	// missing says that the source does not have it. The copy stays as it was.
	// +optional
	Missing bool `json:"missing,omitempty"`
	// lastDiscoveredAt is when it was last found to be referred to, or up to an hour before that.
	// +optional
	LastDiscoveredAt *metav1.Time `json:"lastDiscoveredAt,omitempty"`
}

// SeenRemoved is the seenHash of what the source has no longer.
const SeenRemoved = "removed"

// DependencyType is a kind of objects that workloads refer to.
//
// +enum
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

// Valid reports whether an EnvironmentDependency can be about objects of t.
func (t DependencyType) Valid() bool {
	switch t {
	case DependencyConfigMap, DependencySecret, DependencyService, DependencyServiceAccount:
		return true
	}
	return false
}

// DependencyReference says which object refers to a dependency, and where.
type DependencyReference struct {
	// kind of the object, such as Deployment, Ingress or ServiceAccount.
	Kind string `json:"kind"`
	// name of the object.
	Name string `json:"name"`
	// field is a JSON pointer (RFC 6901) to what refers to the dependency, or what a Service selects. An item of a list is
	// named by its key, as in /spec/template/spec/volumes[name=config]/configMap/name.
	Field string `json:"field"`
}
