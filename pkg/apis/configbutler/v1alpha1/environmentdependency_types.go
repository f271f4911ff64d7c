// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:onlyVerbs=get,list,watch,delete,deleteCollection
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentDependency records an object that an environment's workloads refer to, and that is copied for them. Its name
// is <environment>.<type in lower case>.<name of the copy>, and it is deleted with the environment. The server writes it;
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

// EnvironmentDependencyRecord is an object that workloads refer to, with its source and its copy.
type EnvironmentDependencyRecord struct {
	// environment is the name of the Environment, in this namespace.
	Environment string `json:"environment"`
	// type is ConfigMap, Secret, Service or ServiceAccount.
	Type DependencyType `json:"type"`
	// source is the object that is copied.
	Source NamespacedObjectReference `json:"source"`
	// target is the copy.
	Target NamespacedObjectReference `json:"target"`
	// hash identifies the copied content. Equal content has the same hash. The hash of a Secret is keyed by a key of the
	// server, so that its content cannot be found by guessing.
	// +optional
	Hash string `json:"hash,omitempty"`
	// seenHash is the hash of the newest version in the source that a SyncStatus of type Dependency reports; removed, if
	// it reports that the source no longer has the object. Empty if none reports a version other than the copied one.
	// +optional
	SeenHash string `json:"seenHash,omitempty"`
	// keys are the keys of a ConfigMap or Secret, without values. At most 1000.
	// +optional
	// +listType=set
	Keys []string `json:"keys,omitempty"`
	// referredBy lists the objects of the environment that refer to it, and the referring fields. At most 1000.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +listMapKey=field
	ReferredBy []DependencyReference `json:"referredBy,omitempty"`
	// optional means that workloads also run without it.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// byPatches means that, as far as is known, only patches of the environment refer to it. The user who requests a
	// refresh must be allowed to read it in the source.
	// +optional
	ByPatches bool `json:"byPatches,omitempty"`
	// missing means that the source does not have it. The copy is kept unchanged.
	// +optional
	Missing bool `json:"missing,omitempty"`
	// lastDiscoveredAt is when a reference to it was last found, with a precision of one hour: the time may be up to an
	// hour earlier.
	// +optional
	LastDiscoveredAt *metav1.Time `json:"lastDiscoveredAt,omitempty"`
}

// SeenRemoved is the seenHash of an object that the source no longer has.
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

// Valid reports whether t is a type of objects that an EnvironmentDependency can record.
func (t DependencyType) Valid() bool {
	switch t {
	case DependencyConfigMap, DependencySecret, DependencyService, DependencyServiceAccount:
		return true
	}
	return false
}

// DependencyReference is an object, and its field, that refers to a dependency.
type DependencyReference struct {
	// kind of the object, such as Deployment, Ingress or ServiceAccount.
	Kind string `json:"kind"`
	// name of the object.
	Name string `json:"name"`
	// field is a JSON pointer (RFC 6901) to the reference, or to the labels that a Service selects. An item of a list is
	// identified by its key, as in /spec/template/spec/volumes[name=config]/configMap/name.
	Field string `json:"field"`
}
