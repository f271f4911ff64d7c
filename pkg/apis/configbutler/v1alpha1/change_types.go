// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=get,list,watch,delete,deleteCollection
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Change records one change of an object that a GitDestination mirrors: what changed, who changed it, and the commits that
// contain it. It is in the namespace of the object; changes of cluster-scoped objects are in the namespace of the server. The
// server writes it once a remote has accepted a commit; it can be read and deleted, but not created or changed.
type Change struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Names of newer changes sort before those of older ones.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the change.
	Spec ChangeSpec `json:"spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChangeList is a list of Changes.
type ChangeList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects, the newest change of each namespace first.
	Items []Change `json:"items"`
}

// ChangeSpec describes a change of an object.
type ChangeSpec struct {
	// object is the object that changed.
	Object ChangedObject `json:"object"`
	// operation is Create, Update or Delete as observed by a watch, or Compared: a comparison of the cluster with the branch
	// found the change, which no watch had delivered. It can combine several changes of the object.
	Operation ChangeOperation `json:"operation"`
	// time is when the server observed the change, in milliseconds.
	Time metav1.MicroTime `json:"time"`
	// resourceVersions are the versions of the object that the commits combine.
	// +optional
	ResourceVersions ChangedVersions `json:"resourceVersions,omitempty"`
	// author made the change. Absent if no signal named an author.
	// +optional
	Author *ChangeAuthor `json:"author,omitempty"`
	// fieldManager is the field manager of the request, if no user is known. The client chooses that name.
	// +optional
	FieldManager string `json:"fieldManager,omitempty"`
	// commits contain the change, one for each GitDestination whose remote has accepted it.
	// +optional
	// +listType=atomic
	Commits []ChangeCommit `json:"commits,omitempty"`
}

// ChangedObject identifies an object that changed.
type ChangedObject struct {
	// apiVersion is the group and version in which the object is mirrored, such as apps/v1.
	APIVersion string `json:"apiVersion"`
	// kind of the object, such as Deployment.
	Kind string `json:"kind"`
	// resource is the plural of the object's type in lower case, such as deployments.
	Resource string `json:"resource"`
	// namespace of the object. Empty for a cluster-scoped object.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// uid of the object. Empty if a comparison found that the object was deleted.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// ChangeOperation is the operation of a change.
//
// +enum
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
	// first is the resourceVersion after the first of the combined changes. Empty if the operation is Compared.
	// +optional
	First string `json:"first,omitempty"`
	// last is the resourceVersion after the last of the combined changes, which is the state in the commits. Empty if it is not
	// known.
	// +optional
	Last string `json:"last,omitempty"`
}

// ChangeAuthor is the user who made a change.
type ChangeAuthor struct {
	// username as authenticated by the API server.
	Username string `json:"username"`
	// signal is how the user is known: Audit (an audit event of the API server) or Admission (an admission request).
	Signal string `json:"signal"`
}

// ChangeCommit is a commit that contains a change.
type ChangeCommit struct {
	// destinationRef names the GitDestination.
	DestinationRef NamespacedObjectReference `json:"destinationRef"`
	// sha is the hash of the commit in hexadecimal.
	SHA string `json:"sha"`
	// time is the committer time.
	Time metav1.Time `json:"time"`
	// message is the first line of the commit's message, at most 512 bytes.
	// +optional
	Message string `json:"message,omitempty"`
	// path is the object's file in the repository.
	Path string `json:"path"`
	// url is a link to the commit according to the repository's webURLTemplate. Empty without a template.
	// +optional
	URL string `json:"url,omitempty"`
	// blobBefore is the hash of the file's content before the commit. Empty if the file did not exist.
	// +optional
	BlobBefore string `json:"blobBefore,omitempty"`
	// blobAfter is the hash of the file's content in the commit. Empty if the commit deletes the file.
	// +optional
	BlobAfter string `json:"blobAfter,omitempty"`
}
