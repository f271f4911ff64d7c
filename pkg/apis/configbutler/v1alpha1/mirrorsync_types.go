// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MirrorSync asks for a GitDestination to be compared with the cluster now, and is the answer. It is created at the
// subresource sync of the destination and is not stored.
type MirrorSync struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name and namespace, when they are given, must be those of the
	// destination.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says what to compare. Empty means everything that the destination's rules select.
	// +optional
	Spec MirrorSyncSpec `json:"spec,omitempty"`
	// status is the answer.
	// +optional
	Status MirrorSyncStatus `json:"status,omitempty"`
}

// MirrorSyncSpec says what to compare.
type MirrorSyncSpec struct {
	// types are the resource types to compare, as a plural such as configmaps, or a plural and a group such as
	// deployments.apps. They must be among those that the destination's rules select. Empty means all of them, and
	// that files of types which are selected no more are looked for, too. At most 100.
	// +optional
	// +listType=set
	Types []string `json:"types,omitempty"`
	// full lets everything that is remembered of the branch be forgotten and the branch be read anew, before all types
	// are compared with it. It cannot be combined with types. Defaults to false.
	// +optional
	Full bool `json:"full,omitempty"`
}

// MirrorSyncStatus is what became of a request.
type MirrorSyncStatus struct {
	// accepted says that the request has been recorded and will be carried out, also if this server ends now.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
	// message says in a sentence what was found, or where that can be seen later.
	// +optional
	Message string `json:"message,omitempty"`
	// found is how far the request came before it was answered. Absent when nothing has been done yet.
	// +optional
	Found *SyncProgress `json:"found,omitempty"`
}

// PendingSync is a request to compare a destination now that has not been carried out yet.
type PendingSync struct {
	// id tells the request from others of the destination.
	ID string `json:"id"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
	// types are those asked for. Empty means all.
	// +optional
	// +listType=set
	Types []string `json:"types,omitempty"`
	// full says that the branch is to be read anew.
	// +optional
	Full bool `json:"full,omitempty"`
}

// SyncProgress is how far a request to compare a destination has come.
type SyncProgress struct {
	// id is that of the request.
	ID string `json:"id"`
	// time is when the request was made.
	Time metav1.Time `json:"time"`
	// completionTime is when everything had been compared and the remote had accepted what was found. Absent before.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// types is the number of resource types to compare.
	Types int64 `json:"types"`
	// compared is the number of resource types that have been compared.
	Compared int64 `json:"compared"`
	// filesWritten is the number of files that were missing or not as the cluster has them, and have been written.
	FilesWritten int64 `json:"filesWritten"`
	// filesRemoved is the number of files that no object mapped to and that have been removed.
	FilesRemoved int64 `json:"filesRemoved"`
	// orphansHeld is the number of files that no object maps to and that are kept, because prune is Never.
	OrphansHeld int64 `json:"orphansHeld"`
	// failures say which types could not be compared, and why. They are tried again.
	// +optional
	// +listType=atomic
	Failures []string `json:"failures,omitempty"`
}
