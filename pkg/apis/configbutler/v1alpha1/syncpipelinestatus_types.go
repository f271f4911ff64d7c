// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SyncPipelineStatus is the observed state of a pipeline.
type SyncPipelineStatus struct {
	// observedGeneration is the metadata.generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready reports whether all selected types are watched and every sink can be used; SinksDelivering,
	// whether the last call of every sink succeeded.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// editedBy is the user who created the pipeline or last made it send more, or elsewhere. Nothing is sent if that user
	// may no longer read what the pipeline selects or use what its sinks use, until another user makes it send more.
	// Absent if the user is not known: then no permissions are checked.
	// +optional
	EditedBy *AutomatedBy `json:"editedBy,omitempty"`
	// watchedTypes is the number of types whose objects are watched or listed. CustomResourceDefinitions count as one.
	// +optional
	WatchedTypes int32 `json:"watchedTypes,omitempty"`
	// objects is the number of matching CustomResourceDefinitions and objects.
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// pending is the number of objects that have not been sent yet, summed over all sinks.
	// +optional
	Pending int64 `json:"pending,omitempty"`
	// lastResyncTime is when the last full resync started.
	// +optional
	LastResyncTime *metav1.Time `json:"lastResyncTime,omitempty"`
	// currentRun is the run in progress, of a request or a resync. Absent if there is none.
	// +optional
	CurrentRun *PipelineRun `json:"currentRun,omitempty"`
	// lastRun is the last finished run.
	// +optional
	LastRun *PipelineRun `json:"lastRun,omitempty"`
	// pendingRequests are requests at the subresource sync whose runs have not finished yet, the oldest first. At most
	// 10.
	// +optional
	// +listType=map
	// +listMapKey=id
	PendingRequests []PendingPipelineRequest `json:"pendingRequests,omitempty"`
	// sinks report the status of each sink in the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	Sinks []PipelineSinkStatus `json:"sinks,omitempty"`
	// lastError is what went wrong last. Empty if nothing did, or it has been resolved.
	// +optional
	LastError string `json:"lastError,omitempty"`
}

// PipelineRun is a run that lists all objects and sends the results.
type PipelineRun struct {
	// id is the id of the request, or of the resync.
	ID string `json:"id"`
	// actor is the user who requested it, as authenticated. Empty if it started automatically.
	// +optional
	Actor string `json:"actor,omitempty"`
	// scope is All, CustomResourceDefinitions or Instances.
	Scope PipelineScope `json:"scope"`
	// full means that all matching objects are sent, not only those that differ from what was sent before.
	// +optional
	Full bool `json:"full,omitempty"`
	// phase is Listing, Sending or Finished.
	Phase PipelineRunPhase `json:"phase"`
	// startedAt is when the run started.
	StartedAt metav1.Time `json:"startedAt"`
	// finishedAt is when nothing was left to send. Absent before.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// total is the number of objects to send, summed over all sinks.
	// +optional
	Total int64 `json:"total,omitempty"`
	// done is the number of those that have been sent or rejected.
	// +optional
	Done int64 `json:"done,omitempty"`
	// sinks report the progress of each sink.
	// +optional
	// +listType=map
	// +listMapKey=name
	Sinks []PipelineRunSink `json:"sinks,omitempty"`
}

// PipelineScope selects the objects of a run.
//
// +enum
type PipelineScope string

const (
	// PipelineScopeAll is everything that the pipeline selects.
	PipelineScopeAll PipelineScope = "All"
	// PipelineScopeDefinitions is the CustomResourceDefinitions alone.
	PipelineScopeDefinitions PipelineScope = "CustomResourceDefinitions"
	// PipelineScopeInstances is the objects of the selected types alone.
	PipelineScopeInstances PipelineScope = "Instances"
)

// PipelineRunPhase is the phase of a run.
//
// +enum
type PipelineRunPhase string

const (
	// PipelineRunListing lists the objects.
	PipelineRunListing PipelineRunPhase = "Listing"
	// PipelineRunSending sends them.
	PipelineRunSending PipelineRunPhase = "Sending"
	// PipelineRunFinished has nothing left to send.
	PipelineRunFinished PipelineRunPhase = "Finished"
)

// PipelineRunSink is the progress of a run for one sink.
type PipelineRunSink struct {
	// name of the sink.
	Name string `json:"name"`
	// total is the number of objects to send to it.
	// +optional
	Total int64 `json:"total,omitempty"`
	// done is the number of those that have been sent or rejected.
	// +optional
	Done int64 `json:"done,omitempty"`
	// rejected is the number of those that it rejected.
	// +optional
	Rejected int64 `json:"rejected,omitempty"`
	// answer is its last response, on one line.
	// +optional
	Answer string `json:"answer,omitempty"`
}

// PendingPipelineRequest is a request for a run that has not finished yet.
type PendingPipelineRequest struct {
	// id identifies the request among those of the pipeline.
	ID string `json:"id"`
	// actor is the user who made it, as authenticated.
	Actor string `json:"actor"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
	// scope is All, CustomResourceDefinitions or Instances.
	Scope PipelineScope `json:"scope"`
	// full means that all matching objects are sent.
	// +optional
	Full bool `json:"full,omitempty"`
}

// PipelineSinkStatus is the observed state of a sink.
type PipelineSinkStatus struct {
	// name of the sink.
	Name string `json:"name"`
	// pending is the number of objects that have not been sent to it yet.
	// +optional
	Pending int64 `json:"pending,omitempty"`
	// delivered is the number of objects that it has received in their current version.
	// +optional
	Delivered int64 `json:"delivered,omitempty"`
	// rejected is the number of objects that it rejected. Each is sent again when it changes, at the next resync, or on
	// request.
	// +optional
	Rejected int64 `json:"rejected,omitempty"`
	// lastDeliveryTime is when it last accepted a batch.
	// +optional
	LastDeliveryTime *metav1.Time `json:"lastDeliveryTime,omitempty"`
	// lastDeliveryItems is the number of objects in that batch.
	// +optional
	LastDeliveryItems int64 `json:"lastDeliveryItems,omitempty"`
	// lastAnswer is its last response, on one line.
	// +optional
	LastAnswer string `json:"lastAnswer,omitempty"`
	// failures is the number of consecutive failed attempts. 0 means that the last one succeeded.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// nextAttemptTime is when the next attempt is made. Absent if nothing failed, or if maxAttempts is reached.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`
	// lastError is what went wrong last. Absent if nothing did, or it has been resolved.
	// +optional
	LastError *SyncError `json:"lastError,omitempty"`
}
