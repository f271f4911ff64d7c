// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncRequest requests a sync of an Environment, and returns the result. It is created at the subresource sync of the
// environment and is not stored. A dry run only returns the plan.
type SyncRequest struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   SyncRequestSpec
	Status SyncRequestStatus
}

// SyncRequestSpec selects what to sync.
type SyncRequestSpec struct {
	Action                 SyncAction
	ExpectedCatalogSync    string
	ExpectedDependencySync string
	Force                  bool
	Workloads              []WorkloadReference
}

// SyncRequestStatus is the result of a request.
type SyncRequestStatus struct {
	RequestOutcome
	Plan *SyncPlan
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// EnvironmentDiff shows what syncs of an Environment would currently change. It is read at the environment's subresources
// diff, which never shows the content of Secrets, and secretdiff, which does. It is not stored.
type EnvironmentDiff struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status SyncPlan
}

// SyncPlan is what a sync would change.
type SyncPlan struct {
	CatalogSync    string
	DependencySync string
	FromRevision   int64
	Revision       int64
	Changes        []ObjectChange
	Unchanged      int32
	Warnings       []string
}

// ObjectChange is an object that a sync would change.
type ObjectChange struct {
	Action     SyncAction
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	ChangeType ChangeType
	Fields     []FieldChange
	ChangedBy  []SourceAuthor
	Commits    []MirroredCommit
	Refusal    string
}

// FieldChange is a field that a sync would change.
type FieldChange struct {
	Field      string
	ChangeType ChangeType
	Owners     []string
	Conflict   bool
	Before     *string
	After      *string
	Hidden     bool
}
