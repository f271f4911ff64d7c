// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Undismissal offers dismissed changes of an Environment again, and returns the result. It is created at the subresource
// undismiss of the environment and is not stored.
type Undismissal struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Rediscovery requests that the objects that an Environment's workloads refer to are discovered again, and returns the
// result. It is created at the subresource rediscover of the environment and is not stored.
type Rediscovery struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConflictResolution resolves conflicts of fields that were changed in an Environment and in its catalog, and returns the
// result. It is created at the subresource resolve of the environment and is not stored. The sync continues with the
// resolved fields; other conflicts remain.
type ConflictResolution struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   ConflictResolutionSpec
	Status RequestOutcome
}

// ConflictResolutionSpec resolves conflicts. It contains at least one, and none twice.
type ConflictResolutionSpec struct {
	Keep []ConflictChoice
	Take []ConflictChoice
}

// ConflictChoice names conflicts of a workload in the environment's status.conflicts.
type ConflictChoice struct {
	Kind   WorkloadKind
	Name   string
	Fields []string
}
