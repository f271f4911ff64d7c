// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Undismissal offers dismissed changes of an Environment again, and returns the result. It is created at the subresource
// undismiss of the environment and is not stored.
type Undismissal struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, if given, must be those of the environment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the result.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Rediscovery requests that the objects that an Environment's workloads refer to are discovered again, and returns the
// result. It is created at the subresource rediscover of the environment and is not stored.
type Rediscovery struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, if given, must be those of the environment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the result.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConflictResolution resolves conflicts of fields that were changed in an Environment and in its catalog, and returns the
// result. It is created at the subresource resolve of the environment and is not stored. The sync continues with the
// resolved fields; other conflicts remain.
type ConflictResolution struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, if given, must be those of the environment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the resolution.
	Spec ConflictResolutionSpec `json:"spec"`
	// status is the result.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// ConflictResolutionSpec resolves conflicts. It contains at least one, and none twice.
type ConflictResolutionSpec struct {
	// keep lists the fields whose value in the environment is kept. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Keep []ConflictChoice `json:"keep,omitempty"`
	// take lists the fields that get the catalog's value. At most 100. Fields that the environment's own patches set keep
	// their value, and cannot be named.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Take []ConflictChoice `json:"take,omitempty"`
}

// ConflictChoice names conflicts of a workload in the environment's status.conflicts.
type ConflictChoice struct {
	// kind of the workload.
	Kind WorkloadKind `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
	// fields are JSON pointers, as in status.conflicts. Empty means all conflicts of the workload. At most 100.
	// +optional
	// +listType=set
	Fields []string `json:"fields,omitempty"`
}
