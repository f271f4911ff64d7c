// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:method=Sync,verb=create,subresource=sync,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.PipelineSync,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.PipelineSync
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPipeline sends to other systems which CustomResourceDefinitions the cluster has, and which objects of the selected
// types, by name, labels and annotations. It sends what has been added, changed or removed, and never the content of
// objects.
type SyncPipeline struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name has at most 63 characters and no dots, because labels and the names of
	// Jobs are made of it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state.
	Spec SyncPipelineSpec `json:"spec"`
	// status is the observed state. Only the server writes it.
	// +optional
	Status SyncPipelineStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPipelineList is a list of SyncPipelines.
type SyncPipelineList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []SyncPipeline `json:"items"`
}

// SyncPipelineSpec defines what is sent, to which sinks and when. Definitions, instances or both are enabled.
type SyncPipelineSpec struct {
	// customResourceDefinitions selects the CustomResourceDefinitions to send.
	// +optional
	CustomResourceDefinitions DefinitionSource `json:"customResourceDefinitions,omitempty"`
	// instances selects the types whose objects are sent.
	// +optional
	Instances InstanceSource `json:"instances,omitempty"`
	// mode is Watch (changes are sent as they happen) or Poll (everything is listed each pollInterval, and differences
	// from what was sent before are sent). Defaults to Watch.
	// +optional
	// +default=ref(PipelineModeWatch)
	Mode PipelineMode `json:"mode,omitempty"`
	// pollInterval is the time between listings if mode is Poll, as a duration such as 5m. At least 10s, at most 24h.
	// Defaults to 5m.
	// +optional
	// +default="5m"
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
	// debounce is how long a created or changed object must remain unchanged before its current state is sent, once. An
	// object that keeps changing is sent after ten times as long. Deletions are not delayed. 0s to 10m. Defaults to 10s.
	// +optional
	// +default="10s"
	Debounce *metav1.Duration `json:"debounce,omitempty"`
	// batch bounds the batches.
	// +optional
	Batch PipelineBatch `json:"batch,omitempty"`
	// resyncInterval is the time after which all matching objects are sent again, so that a receiver that lost some gets
	// them again. 0s means never; otherwise at least 1m, at most 720h. Defaults to 1h.
	// +optional
	// +default="1h"
	ResyncInterval *metav1.Duration `json:"resyncInterval,omitempty"`
	// sinks are the receivers. They are independent: one that fails does not delay another. 1 to 16.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	Sinks []PipelineSink `json:"sinks" patchStrategy:"merge" patchMergeKey:"name"`
	// suspend stops watching and sending. When it is lifted, everything is listed, and differences from what was sent
	// before are sent. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// DefinitionSource selects CustomResourceDefinitions.
type DefinitionSource struct {
	// enabled sends CustomResourceDefinitions. Defaults to true.
	// +optional
	// +default=true
	Enabled *bool `json:"enabled,omitempty"`
	// include are names such as certificates.cert-manager.io, in which * matches any characters, as in *.cert-manager.io.
	// Empty means all. At most 1000.
	// +optional
	// +listType=set
	Include []string `json:"include,omitempty"`
	// exclude are names of the same form that are left out even if they are included. At most 1000.
	// +optional
	// +listType=set
	Exclude []string `json:"exclude,omitempty"`
}

// InstanceSource selects types of objects.
type InstanceSource struct {
	// enabled sends objects. Defaults to true.
	// +optional
	// +default=true
	Enabled *bool `json:"enabled,omitempty"`
	// resources are plurals such as deployments, plural.group such as deployments.apps, or * for every type that can be
	// listed and watched. A plural alone matches the types of that name in every group. Empty means *. At most 1000.
	// +optional
	// +listType=set
	Resources []string `json:"resources,omitempty"`
	// exclude are types of the same form, without *, that are left out even if they are named. A given list replaces the
	// default, which is events, events.events.k8s.io, leases.coordination.k8s.io, endpoints,
	// endpointslices.discovery.k8s.io and customresourcedefinitions.apiextensions.k8s.io; an empty list excludes nothing.
	// At most 1000.
	// +optional
	// +listType=set
	Exclude []string `json:"exclude,omitzero"`
}

// PipelineMode is the way to detect changes.
//
// +enum
type PipelineMode string

const (
	// PipelineModeWatch detects changes as they happen.
	PipelineModeWatch PipelineMode = "Watch"
	// PipelineModePoll lists everything periodically.
	PipelineModePoll PipelineMode = "Poll"
)

// PipelineBatch bounds the batches.
type PipelineBatch struct {
	// maxItems is the maximum number of objects in a batch, 1 to 1000. A receiver that accepts fewer gets several calls.
	// Defaults to 50.
	// +optional
	// +default=50
	MaxItems *int32 `json:"maxItems,omitempty"`
	// maxWait is how long an object that is due waits for others, 0s to 5m. Defaults to 5s.
	// +optional
	// +default="5s"
	MaxWait *metav1.Duration `json:"maxWait,omitempty"`
}

// PipelineSink is a receiver. It has either http or job.
type PipelineSink struct {
	// name identifies the sink among those of the pipeline: lower case letters, digits and -, at most 63 characters. The
	// record of what has been sent is stored under it.
	Name string `json:"name"`
	// http sends batches to a server.
	// +optional
	HTTP *HTTPSink `json:"http,omitempty"`
	// job starts a Job for each batch.
	// +optional
	Job *JobSink `json:"job,omitempty"`
	// retry configures how often and when a failed batch is sent again. Pending batches are never dropped.
	// +optional
	Retry PipelineRetry `json:"retry,omitempty"`
}

// HTTPSink is a server that receives batches.
type HTTPSink struct {
	// url is the URL of the server: http or https, a host, and a path if its API does not begin at the root. The format's
	// own paths are appended to it. User names and passwords belong into the Secret, never here; a query and a fragment
	// are rejected.
	URL string `json:"url"`
	// format is the API of the server: ClusterWhisperer, DotAI or CloudEvents.
	Format PipelineFormat `json:"format"`
	// collection is the collection in which DotAI stores the results about CustomResourceDefinitions. Only for the format
	// DotAI, for which it defaults to capabilities.
	// +optional
	Collection string `json:"collection,omitempty"`
	// secretRef names the Secret with the credentials: token, which is sent as a bearer token, or username and password.
	// Without a Secret, none are sent.
	// +optional
	SecretRef *NamespacedObjectReference `json:"secretRef,omitempty"`
	// proxySecretRef names the Secret with the proxy to the server, like secretRef: address, such as
	// http://proxy.example.com:3128, and username and password if the proxy wants them. Absent means the proxy that the
	// environment of this server names for the host, if any.
	// +optional
	ProxySecretRef *NamespacedObjectReference `json:"proxySecretRef,omitempty"`
	// caBundle has the certificates of the certificate authorities of the server, in PEM, as base64. Empty means those
	// that the system trusts. At most 1 MiB.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
	// timeout is the maximum duration of a call, 1s to 5m. Defaults to 30s.
	// +optional
	// +default="30s"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// PipelineFormat is the API of a server.
//
// +enum
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
	// namespace of the Jobs.
	Namespace string `json:"namespace"`
	// serviceAccountName is the service account of their Pods. The template must not name another one. Defaults to
	// default.
	// +optional
	// +default="default"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// template is the JobTemplateSpec of batch/v1 for the Jobs, as in a CronJob: metadata with labels and annotations,
	// and spec.
	Template runtime.RawExtension `json:"template"`
	// concurrencyPolicy is Forbid (a Job is created after the previous one has finished, so that batches are processed in
	// order) or Allow. Defaults to Forbid.
	// +optional
	// +default=ref(PipelineConcurrencyForbid)
	ConcurrencyPolicy PipelineConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
}

// PipelineConcurrencyPolicy selects whether Jobs of one sink may run concurrently.
//
// +enum
type PipelineConcurrencyPolicy string

const (
	// PipelineConcurrencyForbid makes each Job wait for the previous one.
	PipelineConcurrencyForbid PipelineConcurrencyPolicy = "Forbid"
	// PipelineConcurrencyAllow creates Jobs as batches become due.
	PipelineConcurrencyAllow PipelineConcurrencyPolicy = "Allow"
)

// PipelineRetry configures how often and when a failed batch is sent again.
type PipelineRetry struct {
	// maxAttempts is the maximum number of attempts for a batch, including the first, before the sink pauses until the
	// next resync, request or change of the spec, 1 to 100. Pending objects are kept. 0 means no limit. Defaults to 0.
	// +optional
	// +default=0
	MaxAttempts *int32 `json:"maxAttempts,omitempty"`
	// backoff is the time from the first failure to the second attempt, as a duration such as 1s. It doubles with each
	// attempt; a longer Retry-After of the server takes precedence. At least 100ms, at most 1h. Defaults to 1s.
	// +optional
	// +default="1s"
	Backoff *metav1.Duration `json:"backoff,omitempty"`
	// maxBackoff is the longest time between attempts. At least backoff, at most 1h. Defaults to 5m.
	// +optional
	// +default="5m"
	MaxBackoff *metav1.Duration `json:"maxBackoff,omitempty"`
}
