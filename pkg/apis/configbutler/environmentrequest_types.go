// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Undismissal offers an Environment again what was put aside, and is the answer. It is created at the subresource
// undismiss of the environment and is not stored.
type Undismissal struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Rediscovery asks for what an Environment's workloads refer to to be found anew, and is the answer. It is created at the
// subresource rediscover of the environment and is not stored.
type Rediscovery struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status RequestOutcome
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConflictResolution decides about fields that were changed in an Environment and in its catalog, and is the answer. It is
// created at the subresource resolve of the environment and is not stored. The sync goes on with what was decided; other
// conflicts stay.
type ConflictResolution struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   ConflictResolutionSpec
	Status RequestOutcome
}

// ConflictResolutionSpec is what was decided about conflicts. It decides about one at least, and about none twice.
type ConflictResolutionSpec struct {
	Keep []ConflictChoice
	Take []ConflictChoice
}

// ConflictChoice names conflicts of a workload, among those in the environment's status.conflicts.
type ConflictChoice struct {
	Kind   WorkloadKind
	Name   string
	Fields []string
}
