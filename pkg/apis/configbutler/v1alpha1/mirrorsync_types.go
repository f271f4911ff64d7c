// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MirrorSync requests the comparison of a GitDestination with the cluster, and returns the result. It is created at the
// subresource sync of the destination and is not stored.
type MirrorSync struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, if given, must be those of the destination.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec selects what to compare. Empty means everything that the destination's rules select.
	// +optional
	Spec MirrorSyncSpec `json:"spec,omitempty"`
	// status is the result.
	// +optional
	Status MirrorSyncStatus `json:"status,omitempty"`
}

// MirrorSyncSpec selects what to compare.
type MirrorSyncSpec struct {
	// types are the resource types to compare, as a plural such as configmaps, or a plural and a group such as
	// deployments.apps. They must be among those that the destination's rules select. Empty means all of them, and also
	// checks for files of types that are no longer selected. At most 100.
	// +optional
	// +listType=set
	Types []string `json:"types,omitempty"`
	// full discards the cached state of the branch and reads the branch again, before all types are compared with it. It
	// cannot be combined with types. Defaults to false.
	// +optional
	Full bool `json:"full,omitempty"`
}

// MirrorSyncStatus is the result of a request.
type MirrorSyncStatus struct {
	// accepted means that the request is stored and will be carried out, even if this server restarts.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
	// id is the id of the request in status.syncs of the GitDestinationStatus. Empty for a dry run.
	// +optional
	ID string `json:"id,omitempty"`
	// message describes what was found, or where it will be reported.
	// +optional
	Message string `json:"message,omitempty"`
	// found is the progress of the request when the response was sent. Absent if nothing has been done yet.
	// +optional
	Found *SyncProgress `json:"found,omitempty"`
}

// PendingSync is a request to compare a destination that has not been carried out yet.
type PendingSync struct {
	// id identifies the request among those of the destination.
	ID string `json:"id"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
	// types are the requested types. Empty means all.
	// +optional
	// +listType=set
	Types []string `json:"types,omitempty"`
	// full means that the branch is read again.
	// +optional
	Full bool `json:"full,omitempty"`
}

// SyncProgress is the progress of a request to compare a destination.
type SyncProgress struct {
	// id is the id of the request.
	ID string `json:"id"`
	// time is when the request was made.
	Time metav1.Time `json:"time"`
	// completionTime is when all types had been compared and the remote had accepted the resulting commits. Absent
	// before.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// types is the number of resource types to compare.
	Types int64 `json:"types"`
	// compared is the number of resource types that have been compared.
	Compared int64 `json:"compared"`
	// filesWritten is the number of files that were missing or differed from the cluster and have been written.
	FilesWritten int64 `json:"filesWritten"`
	// filesRemoved is the number of files without an object that have been removed.
	FilesRemoved int64 `json:"filesRemoved"`
	// orphansHeld is the number of files without an object that are kept because prune is Never.
	OrphansHeld int64 `json:"orphansHeld"`
	// failures are the types that could not be compared, with the error. They are retried.
	// +optional
	// +listType=atomic
	Failures []string `json:"failures,omitempty"`
}
