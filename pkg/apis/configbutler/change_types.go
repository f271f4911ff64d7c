// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Change records one change of an object that a GitDestination mirrors: what changed, who changed it, and the commits that
// contain it. It is in the namespace of the object; changes of cluster-scoped objects are in the namespace of the server. The
// server writes it once a remote has accepted a commit; it can be read and deleted, but not created or changed.
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
