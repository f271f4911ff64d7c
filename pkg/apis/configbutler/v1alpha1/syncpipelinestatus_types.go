// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SyncPipelineStatus is what the server found out about a pipeline.
type SyncPipelineStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready says whether everything that the pipeline selects is watched and every sink can be told;
	// SinksDelivering, whether the last call of every sink went well.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// editedBy is the user who last had the pipeline send more, or elsewhere, as whoever creates it does. Nothing is sent any
	// more when that user may no longer read what the pipeline selects or reach what its sinks use; whoever has it send more
	// takes their place. Absent when nobody is known to have: then nobody's permissions are asked for.
	// +optional
	EditedBy *AutomatedBy `json:"editedBy,omitempty"`
	// watchedTypes is the number of types whose objects are watched or listed. CustomResourceDefinitions count as one.
	// +optional
	WatchedTypes int32 `json:"watchedTypes,omitempty"`
	// objects is the number of CustomResourceDefinitions and objects that match.
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// pending is the number of objects that some sink has not been told of yet, each sink's counted by itself.
	// +optional
	Pending int64 `json:"pending,omitempty"`
	// lastResyncTime is when a run that sent everything again was last begun.
	// +optional
	LastResyncTime *metav1.Time `json:"lastResyncTime,omitempty"`
	// currentRun is the run that goes on: of a request, or of a resync. Absent when there is none.
	// +optional
	CurrentRun *PipelineRun `json:"currentRun,omitempty"`
	// lastRun is the run that finished last.
	// +optional
	LastRun *PipelineRun `json:"lastRun,omitempty"`
	// pendingRequests are the requests, made at the subresource sync, whose runs have not finished yet, the oldest first. At
	// most 10.
	// +optional
	// +listType=map
	// +listMapKey=id
	PendingRequests []PendingPipelineRequest `json:"pendingRequests,omitempty"`
	// sinks tell of each sink of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	Sinks []PipelineSinkStatus `json:"sinks,omitempty"`
	// lastError is what went wrong last, in a sentence. Empty when nothing did, or it was put right.
	// +optional
	LastError string `json:"lastError,omitempty"`
}

// PipelineRun is a listing of everything, and the sending of what it found.
type PipelineRun struct {
	// id is that of the request, or of the resync.
	ID string `json:"id"`
	// actor is the user who asked for it, as authenticated. Empty when it began by itself.
	// +optional
	Actor string `json:"actor,omitempty"`
	// scope is All, CustomResourceDefinitions or Instances.
	Scope PipelineScope `json:"scope"`
	// full says that everything that matches is sent, not only what differs from what was sent before.
	// +optional
	Full bool `json:"full,omitempty"`
	// phase is Listing, Sending or Finished.
	Phase PipelineRunPhase `json:"phase"`
	// startedAt is when it began.
	StartedAt metav1.Time `json:"startedAt"`
	// finishedAt is when nothing of it was left to send. Absent before.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// total is the number of objects to tell sinks of, each sink's counted by itself.
	// +optional
	Total int64 `json:"total,omitempty"`
	// done is the number of those that have been sent or refused.
	// +optional
	Done int64 `json:"done,omitempty"`
	// sinks tell how far each sink has come.
	// +optional
	// +listType=map
	// +listMapKey=name
	Sinks []PipelineRunSink `json:"sinks,omitempty"`
}

// PipelineScope is what a run is about.
//
// +enum
type PipelineScope string

const (
	// PipelineScopeAll is everything that the pipeline selects.
	PipelineScopeAll PipelineScope = "All"
	// PipelineScopeDefinitions is the CustomResourceDefinitions alone.
	PipelineScopeDefinitions PipelineScope = "CustomResourceDefinitions"
	// PipelineScopeInstances is the objects of the types chosen alone.
	PipelineScopeInstances PipelineScope = "Instances"
)

// PipelineRunPhase is how far a run has come.
//
// +enum
type PipelineRunPhase string

const (
	// PipelineRunListing finds out what there is.
	PipelineRunListing PipelineRunPhase = "Listing"
	// PipelineRunSending sends it.
	PipelineRunSending PipelineRunPhase = "Sending"
	// PipelineRunFinished has nothing left to send.
	PipelineRunFinished PipelineRunPhase = "Finished"
)

// PipelineRunSink is how far a run has come with one sink.
type PipelineRunSink struct {
	// name of the sink.
	Name string `json:"name"`
	// total is the number of objects to tell it of.
	// +optional
	Total int64 `json:"total,omitempty"`
	// done is the number of those that have been sent or refused.
	// +optional
	Done int64 `json:"done,omitempty"`
	// rejected is the number of those that it refused.
	// +optional
	Rejected int64 `json:"rejected,omitempty"`
	// answer is what it answered last, on one line.
	// +optional
	Answer string `json:"answer,omitempty"`
}

// PendingPipelineRequest is a request for a run that has not finished yet.
type PendingPipelineRequest struct {
	// id tells the request from others of the pipeline.
	ID string `json:"id"`
	// actor is the user who made it, as authenticated.
	Actor string `json:"actor"`
	// time is when it was made.
	Time metav1.Time `json:"time"`
	// scope is All, CustomResourceDefinitions or Instances.
	Scope PipelineScope `json:"scope"`
	// full says that everything that matches is to be sent.
	// +optional
	Full bool `json:"full,omitempty"`
}

// PipelineSinkStatus is what the server found out about a sink.
type PipelineSinkStatus struct {
	// name of the sink.
	Name string `json:"name"`
	// pending is the number of objects that it has not been told of yet.
	// +optional
	Pending int64 `json:"pending,omitempty"`
	// delivered is the number of objects that it knows.
	// +optional
	Delivered int64 `json:"delivered,omitempty"`
	// rejected is the number of objects that it refused. Each is sent again when it changes, at the next resync, or when
	// somebody asks for it.
	// +optional
	Rejected int64 `json:"rejected,omitempty"`
	// lastDeliveryTime is when it last took something.
	// +optional
	LastDeliveryTime *metav1.Time `json:"lastDeliveryTime,omitempty"`
	// lastDeliveryItems is the number of objects that it took then.
	// +optional
	LastDeliveryItems int64 `json:"lastDeliveryItems,omitempty"`
	// lastAnswer is what it answered last, on one line.
	// +optional
	LastAnswer string `json:"lastAnswer,omitempty"`
	// failures is the number of attempts in a row that failed. 0 means that the last one went well.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// nextAttemptTime is when it is tried again. Absent when nothing failed, or the sink rests because maxAttempts is
	// reached.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`
	// lastError is what went wrong last. Absent when nothing did, or it was put right.
	// +optional
	LastError *SyncError `json:"lastError,omitempty"`
}
