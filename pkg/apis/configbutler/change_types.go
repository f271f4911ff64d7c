// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Change records one change of an object that a GitDestination mirrors: what changed, who changed it, and the commits that
// contain it. It is in the namespace of the object; changes of cluster-scoped objects are in the namespace of the server. The
// server writes it once a remote has accepted a commit; it can be read, but not created, changed or deleted. So
// it outlives its namespace; SyncPolicy.spec.changes limits how long it is kept.
type Change struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec ChangeSpec
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChangeList is a list of Changes.
type ChangeList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []Change
}

// ChangeSpec describes a change of an object.
type ChangeSpec struct {
	Object           ChangedObject
	Operation        ChangeOperation
	Time             metav1.MicroTime
	ResourceVersions ChangedVersions
	Author           *ChangeAuthor
	FieldManager     string
	Fields           []string
	MoreFields       int32
	Lines            *ChangedLines
	Reason           string
	ManagedBy        *ChangeManager
	Bypass           bool
	Commits          []ChangeCommit
}

// ChangedObject identifies an object that changed.
type ChangedObject struct {
	APIVersion string
	Kind       string
	Resource   string
	Namespace  string
	Name       string
	UID        types.UID
}

// ChangeOperation is the operation of a change.
type ChangeOperation string

const (
	// ChangeCreate is the creation of an object.
	ChangeCreate ChangeOperation = "Create"
	// ChangeUpdate is a change of an existing object.
	ChangeUpdate ChangeOperation = "Update"
	// ChangeDelete is the deletion of an object.
	ChangeDelete ChangeOperation = "Delete"
	// ChangeCompared is a difference between an object and its file that a comparison found.
	ChangeCompared ChangeOperation = "Compared"
)

// ChangedVersions are the resourceVersions of an object that a change combines.
type ChangedVersions struct {
	First string
	Last  string
}

// ChangedLines is the size of a change in lines of the object's file.
type ChangedLines struct {
	Added   int32
	Removed int32
}

// ManagingTool is a kind of tool that manages objects.
type ManagingTool string

const (
	// ManagedByFlux is a Kustomization or HelmRelease of Flux.
	ManagedByFlux ManagingTool = "Flux"
	// ManagedByArgoCD is an Application of Argo CD.
	ManagedByArgoCD ManagingTool = "ArgoCD"
	// ManagedByHelm is a release of Helm.
	ManagedByHelm ManagingTool = "Helm"
	// ManagedByOwner is the controller of the object: its owner reference with controller: true.
	ManagedByOwner ManagingTool = "Owner"
)

// ChangeManager is what manages an object.
type ChangeManager struct {
	Tool      ManagingTool
	Kind      string
	Namespace string
	Name      string
}

// ChangeAuthor is the user who made a change.
type ChangeAuthor struct {
	Username string
	Signal   string
}

// ChangeCommit is a commit that contains a change.
type ChangeCommit struct {
	DestinationRef NamespacedObjectReference
	SHA            string
	Time           metav1.Time
	Message        string
	Path           string
	URL            string
	BlobBefore     string
	BlobAfter      string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChangeDiff shows the contents before and after a Change. It is read at the subresource diff of the Change, by users with the
// permission get on the type of the object.
type ChangeDiff struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Object ChangedObject
	Fields []FieldDifference
	Before *runtime.RawExtension
	After  *runtime.RawExtension
	Ignore []IgnoreRule
}

// FieldDifference is a field that differs between two contents of an object.
type FieldDifference struct {
	Field      string
	ChangeType ChangeType
	Before     *string
	After      *string
	Hidden     bool
}
