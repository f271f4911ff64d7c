// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PipelineSync requests that the objects that a SyncPipeline selects are listed and sent, and returns the result. It is
// created at the subresource sync of the pipeline and is not stored.
type PipelineSync struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   PipelineSyncSpec
	Status PipelineSyncStatus
}

// PipelineSyncSpec selects what is sent.
type PipelineSyncSpec struct {
	Scope PipelineScope
	Full  bool
}

// PipelineSyncStatus is the result of a request.
type PipelineSyncStatus struct {
	Accepted bool
	ID       string
	Message  string
	Run      *PipelineRun
}
