// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MirrorSync requests the comparison of a GitDestination with the cluster, and returns the result. It is created at the
// subresource sync of the destination and is not stored.
type MirrorSync struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   MirrorSyncSpec
	Status MirrorSyncStatus
}

// MirrorSyncSpec selects what to compare.
type MirrorSyncSpec struct {
	Types []string
	Full  bool
}

// MirrorSyncStatus is the result of a request.
type MirrorSyncStatus struct {
	Accepted bool
	ID       string
	Message  string
	Found    *SyncProgress
}

// PendingSync is a request to compare a destination that has not been carried out yet.
type PendingSync struct {
	ID    string
	Time  metav1.Time
	Types []string
	Full  bool
}

// SyncProgress is the progress of a request to compare a destination.
type SyncProgress struct {
	ID             string
	Time           metav1.Time
	CompletionTime *metav1.Time
	Types          int64
	Compared       int64
	FilesWritten   int64
	FilesRemoved   int64
	OrphansHeld    int64
	Failures       []string
}
