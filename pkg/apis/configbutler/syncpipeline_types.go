// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPipeline sends to other systems which CustomResourceDefinitions the cluster has, and which objects of the selected
// types, by name, labels and annotations. It sends what has been added, changed or removed, and never the content of
// objects.
type SyncPipeline struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   SyncPipelineSpec
	Status SyncPipelineStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPipelineList is a list of SyncPipelines.
type SyncPipelineList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []SyncPipeline
}

// SyncPipelineSpec defines what is sent, to which sinks and when. Definitions, instances or both are enabled.
type SyncPipelineSpec struct {
	CustomResourceDefinitions DefinitionSource
	Instances                 InstanceSource
	Mode                      PipelineMode
	PollInterval              *metav1.Duration
	Debounce                  *metav1.Duration
	Batch                     PipelineBatch
	ResyncInterval            *metav1.Duration
	Sinks                     []PipelineSink
	Suspend                   bool
}

// DefinitionSource selects CustomResourceDefinitions.
type DefinitionSource struct {
	Enabled *bool
	Include []string
	Exclude []string
}

// InstanceSource selects types of objects.
type InstanceSource struct {
	Enabled   *bool
	Resources []string
	Exclude   []string
}

// PipelineMode is the way to detect changes.
type PipelineMode string

const (
	// PipelineModeWatch detects changes as they happen.
	PipelineModeWatch PipelineMode = "Watch"
	// PipelineModePoll lists everything periodically.
	PipelineModePoll PipelineMode = "Poll"
)

// PipelineBatch bounds the batches.
type PipelineBatch struct {
	MaxItems *int32
	MaxWait  *metav1.Duration
}

// PipelineSink is a receiver. It has either http or job.
type PipelineSink struct {
	Name  string
	HTTP  *HTTPSink
	Job   *JobSink
	Retry PipelineRetry
}

// HTTPSink is a server that receives batches.
type HTTPSink struct {
	URL            string
	Format         PipelineFormat
	Collection     string
	SecretRef      *NamespacedObjectReference
	ProxySecretRef *NamespacedObjectReference
	CABundle       []byte
	Timeout        *metav1.Duration
}

// PipelineFormat is the API of a server.
type PipelineFormat string

const (
	// PipelineFormatClusterWhisperer is the API of cluster-whisperer.
	PipelineFormatClusterWhisperer PipelineFormat = "ClusterWhisperer"
	// PipelineFormatDotAI is the API of dot-ai.
	PipelineFormatDotAI PipelineFormat = "DotAI"
	// PipelineFormatCloudEvents is CloudEvents 1.0 over HTTP in binary mode, one event for each batch.
	PipelineFormatCloudEvents PipelineFormat = "CloudEvents"
)

// JobSink creates a Job for each batch. The batch is the file /etc/slipstream/batch/batch.json in each container, whose
// path is in the environment variable SLIPSTREAM_BATCH.
type JobSink struct {
	Namespace          string
	ServiceAccountName string
	Template           runtime.RawExtension
	ConcurrencyPolicy  PipelineConcurrencyPolicy
}

// PipelineConcurrencyPolicy selects whether Jobs of one sink may run concurrently.
type PipelineConcurrencyPolicy string

const (
	// PipelineConcurrencyForbid makes each Job wait for the previous one.
	PipelineConcurrencyForbid PipelineConcurrencyPolicy = "Forbid"
	// PipelineConcurrencyAllow creates Jobs as batches become due.
	PipelineConcurrencyAllow PipelineConcurrencyPolicy = "Allow"
)

// PipelineRetry configures how often and when a failed batch is sent again.
type PipelineRetry struct {
	MaxAttempts *int32
	Backoff     *metav1.Duration
	MaxBackoff  *metav1.Duration
}
