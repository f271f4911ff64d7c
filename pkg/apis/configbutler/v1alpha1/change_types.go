// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=get,list,watch
// +genclient:method=Diff,verb=get,subresource=diff,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.ChangeDiff
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Change records one change of an object that a GitDestination mirrors: what changed, who changed it, and the commits that
// contain it. It is in the namespace of the object; changes of cluster-scoped objects are in the namespace of the server. The
// server writes it once a remote has accepted a commit; it can be read, but not created, changed or deleted. So
// it outlives its namespace; SyncPolicy.spec.changes limits how long it is kept.
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
	// fields are the paths of the fields that differ between the two contents, at most 20, sorted. A path is a JSON pointer
	// (RFC 6901). An item of a list is identified by its name, as in /spec/template/spec/containers[name=web]/image; a list
	// whose items have no names is one field. The fields of a ChangeDiff identify items by the keys of the schema instead, so the
	// same port can be /spec/ports[name=http] here and /spec/ports[port=80,protocol=TCP] there. Values are never shown. Absent for Create and Delete, and if the server did not
	// have the content before the change.
	// +optional
	// +listType=atomic
	Fields []string `json:"fields,omitempty"`
	// moreFields is the number of further fields that differ.
	// +optional
	MoreFields int32 `json:"moreFields,omitempty"`
	// lines is the size of the change. Absent for a Secret, and if the server did not have the content before the change.
	// +optional
	Lines *ChangedLines `json:"lines,omitempty"`
	// reason is why the change was made, at most 512 bytes: the value of the annotation configbutler.ai/reason, or
	// kubernetes.io/change-cause, if the write that made the change set it.
	// +optional
	Reason string `json:"reason,omitempty"`
	// managedBy is the tool or the object that manages the object. Absent if none is known.
	// +optional
	ManagedBy *ChangeManager `json:"managedBy,omitempty"`
	// bypass means that a person, or another manager than managedBy, changed the object.
	// +optional
	Bypass bool `json:"bypass,omitempty"`
	// commits contain the change, one for each GitDestination whose remote has accepted it.
	// +optional
	// +listType=atomic
	Commits []ChangeCommit `json:"commits,omitempty"`
}

// Annotations whose value is the reason of the write that sets them. They are left out of the mirrored file. The first takes precedence.
const (
	AnnotationReason      = GroupName + "/reason"
	AnnotationChangeCause = "kubernetes.io/change-cause"
)

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

// ChangedLines is the size of a change in lines of the object's file.
type ChangedLines struct {
	// added is the number of lines that only the new content has.
	Added int32 `json:"added"`
	// removed is the number of lines that only the content before has.
	Removed int32 `json:"removed"`
}

// ManagingTool is a kind of tool that manages objects.
//
// +enum
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
	// tool is Flux, ArgoCD, Helm, or Owner.
	Tool ManagingTool `json:"tool"`
	// kind of the managing object, such as Kustomization. Empty for Helm, whose releases are no objects.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the managing object or release. Empty if it is not known.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the managing object or release.
	Name string `json:"name"`
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

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ChangeDiff shows the contents before and after a Change. It is read at the subresource diff of the Change, by users with the
// permission get on the type of the object.
type ChangeDiff struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata, with the name and namespace of the Change.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// object is the object that changed.
	Object ChangedObject `json:"object"`
	// fields are the fields that differ, sorted by path. Empty if one of the contents does not exist.
	// +optional
	// +listType=atomic
	Fields []FieldDifference `json:"fields,omitempty"`
	// before is the object as it was in Git before the change. Absent if it was not there. The values of a Secret are masked.
	// +optional
	Before *runtime.RawExtension `json:"before,omitempty"`
	// after is the object as the commit has it. Absent if the commit deletes it. The values of a Secret are masked.
	// +optional
	After *runtime.RawExtension `json:"after,omitempty"`
	// ignore are the rules of the GitDestination whose target matches the object: fields that are not mirrored, so the contents lack
	// them. Absent if the GitDestination no longer exists.
	// +optional
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitempty"`
}

// FieldDifference is a field that differs between two contents of an object.
type FieldDifference struct {
	// field is a JSON pointer (RFC 6901). An item of a list is identified by the keys that the schema of the type defines, as in
	// /spec/template/spec/containers[name=web]/image or /spec/ports[port=80,protocol=TCP]/name. The fields of a ChangeSpec identify
	// items by their names instead.
	Field string `json:"field"`
	// changeType is Added, Changed or Removed.
	ChangeType ChangeType `json:"changeType"`
	// before is the value before the change, as JSON. Absent if there was none, or if it is hidden.
	// +optional
	Before *string `json:"before,omitempty"`
	// after is the value after the change, as JSON. Absent if there is none, or if it is hidden.
	// +optional
	After *string `json:"after,omitempty"`
	// hidden means that the values are not shown, because they belong to a Secret.
	// +optional
	Hidden bool `json:"hidden,omitempty"`
}
