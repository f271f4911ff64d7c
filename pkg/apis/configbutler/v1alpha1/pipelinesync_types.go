// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PipelineSync asks for what a SyncPipeline selects to be listed and sent now, and is the answer. It is created at the
// subresource sync of the pipeline and is not stored.
type PipelineSync struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name, when it is given, must be that of the pipeline.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says what is sent. Empty means everything that some sink does not know as it is.
	// +optional
	Spec PipelineSyncSpec `json:"spec,omitempty"`
	// status is the answer.
	// +optional
	Status PipelineSyncStatus `json:"status,omitempty"`
}

// PipelineSyncSpec says what is sent.
type PipelineSyncSpec struct {
	// scope is All, CustomResourceDefinitions or Instances. Defaults to All.
	// +optional
	// +default=ref(PipelineScopeAll)
	Scope PipelineScope `json:"scope,omitempty"`
	// full has everything that matches sent, not only what differs from what was sent before, what waits and what was
	// refused. Defaults to false.
	// +optional
	Full bool `json:"full,omitempty"`
}

// PipelineSyncStatus is what became of a request.
type PipelineSyncStatus struct {
	// accepted says that the request has been recorded and will be carried out, also if this server ends now.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
	// id is that of the request, which status.pendingRequests, currentRun and lastRun of the pipeline have. Empty when it was
	// not accepted, or for a dry run.
	// +optional
	ID string `json:"id,omitempty"`
	// message says in a sentence what was sent, or where that can be seen later.
	// +optional
	Message string `json:"message,omitempty"`
	// run is how far the request came before it was answered: what was sent, to whom, and the answer. Absent when nothing
	// has been done yet.
	// +optional
	Run *PipelineRun `json:"run,omitempty"`
}
