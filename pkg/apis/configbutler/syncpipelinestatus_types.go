// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SyncPipelineStatus is the observed state of a pipeline.
type SyncPipelineStatus struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
	EditedBy           *AutomatedBy
	WatchedTypes       int32
	Objects            int64
	Pending            int64
	LastResyncTime     *metav1.Time
	CurrentRun         *PipelineRun
	LastRun            *PipelineRun
	PendingRequests    []PendingPipelineRequest
	Sinks              []PipelineSinkStatus
	LastError          string
}

// PipelineRun is a run that lists all objects and sends the results.
type PipelineRun struct {
	ID         string
	Actor      string
	Scope      PipelineScope
	Full       bool
	Phase      PipelineRunPhase
	StartedAt  metav1.Time
	FinishedAt *metav1.Time
	Total      int64
	Done       int64
	Sinks      []PipelineRunSink
}

// PipelineScope selects the objects of a run.
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
	Name     string
	Total    int64
	Done     int64
	Rejected int64
	Answer   string
}

// PendingPipelineRequest is a request for a run that has not finished yet.
type PendingPipelineRequest struct {
	ID    string
	Actor string
	Time  metav1.Time
	Scope PipelineScope
	Full  bool
}

// PipelineSinkStatus is the observed state of a sink.
type PipelineSinkStatus struct {
	Name              string
	Pending           int64
	Delivered         int64
	Rejected          int64
	LastDeliveryTime  *metav1.Time
	LastDeliveryItems int64
	LastAnswer        string
	Failures          int32
	NextAttemptTime   *metav1.Time
	LastError         *SyncError
}
