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

// SyncPipeline tells other systems what the cluster can do and what runs in it: which CustomResourceDefinitions there are,
// and which objects of the types chosen, by name, labels and annotations. It sends what has been added, changed or removed,
// and never what objects hold.
type SyncPipeline struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name has at most 63 characters and no dots, because labels and the names of
	// Jobs are made of it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the user wants.
	Spec SyncPipelineSpec `json:"spec"`
	// status is what the server found. Only the server writes it.
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

// SyncPipelineSpec says what is sent, to whom and when. Definitions, instances or both are enabled.
type SyncPipelineSpec struct {
	// customResourceDefinitions chooses the CustomResourceDefinitions that are told of.
	// +optional
	CustomResourceDefinitions DefinitionSource `json:"customResourceDefinitions,omitempty"`
	// instances chooses the types whose objects are told of.
	// +optional
	Instances InstanceSource `json:"instances,omitempty"`
	// mode is Watch (changes are sent as they come) or Poll (everything is listed each pollInterval, and what differs
	// from what was sent before is sent). Defaults to Watch.
	// +optional
	// +default=ref(PipelineModeWatch)
	Mode PipelineMode `json:"mode,omitempty"`
	// pollInterval is the time from one listing to the next when mode is Poll, as a duration such as 5m. At least 10s, at
	// most 24h. Defaults to 5m.
	// +optional
	// +default="5m"
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
	// debounce is how long an object that was created or changed has to be left alone before it is sent; what it is then is
	// sent, once. An object that never rests is sent all the same after ten times as long. Deletions do not wait. 0s to 10m.
	// Defaults to 10s.
	// +optional
	// +default="10s"
	Debounce *metav1.Duration `json:"debounce,omitempty"`
	// batch bounds what travels together.
	// +optional
	Batch PipelineBatch `json:"batch,omitempty"`
	// resyncInterval is the time after which everything that matches is sent again, so that a receiver that lost
	// something has it again. 0s means never; otherwise at least 1m, at most 720h. Defaults to 1h.
	// +optional
	// +default="1h"
	ResyncInterval *metav1.Duration `json:"resyncInterval,omitempty"`
	// sinks are those who are told, each by itself: one that fails does not hold up another. 1 to 16.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	Sinks []PipelineSink `json:"sinks" patchStrategy:"merge" patchMergeKey:"name"`
	// suspend stops watching and sending. When it ends, everything is listed, and what differs from what was sent before is
	// sent. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// DefinitionSource chooses CustomResourceDefinitions.
type DefinitionSource struct {
	// enabled says whether CustomResourceDefinitions are told of. Defaults to true.
	// +optional
	// +default=true
	Enabled *bool `json:"enabled,omitempty"`
	// include are names such as certificates.cert-manager.io, in which * stands for any characters, as in
	// *.cert-manager.io. Empty means all. At most 1000.
	// +optional
	// +listType=set
	Include []string `json:"include,omitempty"`
	// exclude are names of the same form that are left out although they are included. At most 1000.
	// +optional
	// +listType=set
	Exclude []string `json:"exclude,omitempty"`
}

// InstanceSource chooses types of objects.
type InstanceSource struct {
	// enabled says whether objects are told of. Defaults to true.
	// +optional
	// +default=true
	Enabled *bool `json:"enabled,omitempty"`
	// resources are plurals such as deployments, plural.group such as deployments.apps, or * for every type that can be
	// listed and watched. A plural alone stands for the types of that name in every group. Empty means *. At most 1000.
	// +optional
	// +listType=set
	Resources []string `json:"resources,omitempty"`
	// exclude are types of the same form, without *, that are left out, also when they are named. A list that is given
	// replaces the default, which is events, events.events.k8s.io, leases.coordination.k8s.io, endpoints,
	// endpointslices.discovery.k8s.io and customresourcedefinitions.apiextensions.k8s.io; an empty list leaves nothing out.
	// At most 1000.
	// +optional
	// +listType=set
	Exclude []string `json:"exclude,omitzero"`
}

// PipelineMode is a way to notice changes.
//
// +enum
type PipelineMode string

const (
	// PipelineModeWatch notices changes as they come.
	PipelineModeWatch PipelineMode = "Watch"
	// PipelineModePoll lists everything from time to time.
	PipelineModePoll PipelineMode = "Poll"
)

// PipelineBatch bounds what travels together.
type PipelineBatch struct {
	// maxItems is how many objects are sent in one batch, 1 to 1000. A receiver that takes fewer gets several calls. Defaults
	// to 50.
	// +optional
	// +default=50
	MaxItems *int32 `json:"maxItems,omitempty"`
	// maxWait is how long an object that is due waits for others, 0s to 5m. Defaults to 5s.
	// +optional
	// +default="5s"
	MaxWait *metav1.Duration `json:"maxWait,omitempty"`
}

// PipelineSink is somebody who is told. It has either http or job.
type PipelineSink struct {
	// name tells the sinks of a pipeline apart: lower case letters, digits and -, at most 63 characters. What has been sent is
	// remembered under it.
	Name string `json:"name"`
	// http sends batches to a server.
	// +optional
	HTTP *HTTPSink `json:"http,omitempty"`
	// job starts a Job for each batch.
	// +optional
	Job *JobSink `json:"job,omitempty"`
	// retry says how often and when a batch that failed is sent again. Waiting batches are never dropped.
	// +optional
	Retry PipelineRetry `json:"retry,omitempty"`
}

// HTTPSink is a server that is told.
type HTTPSink struct {
	// url is where the server is: http or https, a host, and a path if its API does not begin at the root. The format's own paths
	// come after it. User names and passwords belong into the Secret, never here; a query and a fragment are refused.
	URL string `json:"url"`
	// format is what the server understands: ClusterWhisperer, DotAI or CloudEvents.
	Format PipelineFormat `json:"format"`
	// collection is where DotAI keeps what it finds out about CustomResourceDefinitions. Only for the format DotAI, where it
	// defaults to capabilities.
	// +optional
	Collection string `json:"collection,omitempty"`
	// secretRef names the Secret with the credentials: token, which is sent as a bearer token, or username and password.
	// Without a Secret none are sent.
	// +optional
	SecretRef *NamespacedObjectReference `json:"secretRef,omitempty"`
	// caBundle holds the certificates, in PEM, of the authorities that the server's certificate may come from, as base64.
	// Empty means those that the system trusts. At most 1 MiB.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
	// timeout is how long a call may take, 1s to 5m. Defaults to 30s.
	// +optional
	// +default="30s"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// PipelineFormat is what a server understands.
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

// JobSink starts a Job for each batch. The batch is the file /etc/slipstream/batch/batch.json in each container, whose path
// is in the environment variable SLIPSTREAM_BATCH.
type JobSink struct {
	// namespace that the Jobs are made in.
	Namespace string `json:"namespace"`
	// serviceAccountName is the account that their Pods run as. The template must not name another one. Defaults to
	// default.
	// +optional
	// +default="default"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// template is the JobTemplateSpec of batch/v1 that Jobs are made from, as in a CronJob: metadata with labels and
	// annotations, and spec.
	Template runtime.RawExtension `json:"template"`
	// concurrencyPolicy is Forbid (a Job is made when the one before has finished, so that batches are handled in their
	// order) or Allow. Defaults to Forbid.
	// +optional
	// +default=ref(PipelineConcurrencyForbid)
	ConcurrencyPolicy PipelineConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
}

// PipelineConcurrencyPolicy says whether Jobs of one sink may run at the same time.
//
// +enum
type PipelineConcurrencyPolicy string

const (
	// PipelineConcurrencyForbid has each Job wait for the one before.
	PipelineConcurrencyForbid PipelineConcurrencyPolicy = "Forbid"
	// PipelineConcurrencyAllow makes Jobs as batches come.
	PipelineConcurrencyAllow PipelineConcurrencyPolicy = "Allow"
)

// PipelineRetry says how often and when a batch that failed is sent again.
type PipelineRetry struct {
	// maxAttempts is how often a batch is sent, the first time included, before the sink rests until the next resync, request
	// or change of the spec, 1 to 100. What waits is kept. 0 means without end. Defaults to 0.
	// +optional
	// +default=0
	MaxAttempts *int32 `json:"maxAttempts,omitempty"`
	// backoff is the time from the first failure to the second attempt, as a duration such as 1s. It doubles with each
	// attempt; a server that asks for a longer time gets it. At least 100ms, at most 1h. Defaults to 1s.
	// +optional
	// +default="1s"
	Backoff *metav1.Duration `json:"backoff,omitempty"`
	// maxBackoff is the longest time between attempts. At least backoff, at most 1h. Defaults to 5m.
	// +optional
	// +default="5m"
	MaxBackoff *metav1.Duration `json:"maxBackoff,omitempty"`
}
