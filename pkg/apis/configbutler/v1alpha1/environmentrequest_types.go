// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Undismissal offers an Environment again what was put aside, and is the answer. It is created at the subresource
// undismiss of the environment and is not stored.
type Undismissal struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, when they are given, must be those of the environment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the answer.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Rediscovery asks for what an Environment's workloads refer to to be found anew, and is the answer. It is created at the
// subresource rediscover of the environment and is not stored.
type Rediscovery struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, when they are given, must be those of the environment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the answer.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConflictResolution decides about fields that were changed in an Environment and in its catalog, and is the answer. It is
// created at the subresource resolve of the environment and is not stored. The sync goes on with what was decided; other
// conflicts stay.
type ConflictResolution struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, when they are given, must be those of the environment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what was decided.
	Spec ConflictResolutionSpec `json:"spec"`
	// status is the answer.
	// +optional
	Status RequestOutcome `json:"status,omitempty"`
}

// ConflictResolutionSpec is what was decided about conflicts. It decides about one at least, and about none twice.
type ConflictResolutionSpec struct {
	// keep are the fields that stay as they are in the environment. At most 100.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Keep []ConflictChoice `json:"keep,omitempty"`
	// take are the fields that become what the catalog offers. At most 100. Those that the environment's own patches set
	// stay as they are, and cannot be named.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Take []ConflictChoice `json:"take,omitempty"`
}

// ConflictChoice names conflicts of a workload, among those in the environment's status.conflicts.
type ConflictChoice struct {
	// kind of the workload.
	Kind WorkloadKind `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
	// fields are JSON pointers, as status.conflicts has them. Empty means all conflicts of the workload.
	// +optional
	// +listType=set
	Fields []string `json:"fields,omitempty"`
}
