// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PipelineSync requests that the objects that a SyncPipeline selects are listed and sent, and returns the result. It is
// created at the subresource sync of the pipeline and is not stored.
type PipelineSync struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name, if given, must be that of the pipeline.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec selects what is sent. Empty means everything that differs from what some sink has received.
	// +optional
	Spec PipelineSyncSpec `json:"spec,omitempty"`
	// status is the result.
	// +optional
	Status PipelineSyncStatus `json:"status,omitempty"`
}

// PipelineSyncSpec selects what is sent.
type PipelineSyncSpec struct {
	// scope is All, CustomResourceDefinitions or Instances. Defaults to All.
	// +optional
	// +default=ref(PipelineScopeAll)
	Scope PipelineScope `json:"scope,omitempty"`
	// full sends all matching objects, not only those that differ from what was sent before, are pending or were
	// rejected. Defaults to false.
	// +optional
	Full bool `json:"full,omitempty"`
}

// PipelineSyncStatus is the result of a request.
type PipelineSyncStatus struct {
	// accepted means that the request is stored and will be carried out, even if this server restarts.
	// +optional
	Accepted bool `json:"accepted,omitempty"`
	// id is the id of the request, as in status.pendingRequests, currentRun and lastRun of the pipeline. Empty if it was
	// not accepted, or for a dry run.
	// +optional
	ID string `json:"id,omitempty"`
	// message describes what was sent, or where it will be reported.
	// +optional
	Message string `json:"message,omitempty"`
	// run is the progress of the request when the response was sent: what was sent, to which sinks, and their responses.
	// Absent if nothing has been done yet.
	// +optional
	Run *PipelineRun `json:"run,omitempty"`
}
