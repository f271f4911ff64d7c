// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MirrorSync asks for a GitDestination to be compared with the cluster now, and is the answer.
type MirrorSync struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   MirrorSyncSpec
	Status MirrorSyncStatus
}

// MirrorSyncSpec says what to compare.
type MirrorSyncSpec struct {
	Types []string
	Full  bool
}

// MirrorSyncStatus is what became of a request.
type MirrorSyncStatus struct {
	Accepted bool
	Message  string
	Found    *SyncProgress
}

// PendingSync is a request to compare a destination now that has not been carried out yet.
type PendingSync struct {
	ID    string
	Time  metav1.Time
	Types []string
	Full  bool
}

// SyncProgress is how far a request to compare a destination has come.
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
