// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPolicy holds the settings that all catalogs and environments share. There is one, called default; without it, all
// settings have their defaults.
type SyncPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name must be default.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state.
	// +optional
	Spec SyncPolicySpec `json:"spec,omitempty"`
	// status is the observed state. Only the server writes it.
	// +optional
	Status SyncPolicyStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPolicyList is a list of SyncPolicies.
type SyncPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []SyncPolicy `json:"items"`
}

// SyncPolicyName is the name of the only SyncPolicy.
const SyncPolicyName = "default"

// SyncPolicySpec holds the settings.
type SyncPolicySpec struct {
	// suspend stops work of whole kinds. Requests of users are carried out unless noted otherwise.
	// +optional
	Suspend SuspendedWork `json:"suspend,omitempty"`
	// batchWindow is how long changes of the source are collected, from the first one on, before they are recorded
	// together, as a duration such as 30s. At least 1s, at most 1h. Defaults to 30s.
	// +optional
	// +default="30s"
	BatchWindow *metav1.Duration `json:"batchWindow,omitempty"`
	// maxSyncsPerMinute is the maximum number of environment syncs that start within a minute; others wait in order. 1 to
	// 10000. Defaults to 60.
	// +optional
	// +default=60
	MaxSyncsPerMinute *int32 `json:"maxSyncsPerMinute,omitempty"`
	// retry configures how often and when failed work is retried before manual intervention is required.
	// +optional
	Retry RetryPolicy `json:"retry,omitempty"`
	// retention configures how long SyncStatuses are kept.
	// +optional
	Retention Retention `json:"retention,omitempty"`
	// changes configures how long Changes are kept.
	// +optional
	Changes ChangeRetention `json:"changes,omitempty"`
	// reminders configure when NotificationSinks repeat the notifications of what still needs a decision, or still fails.
	// +optional
	Reminders Reminders `json:"reminders,omitempty"`
	// maxDismissals is the maximum number of consecutive dismissals for one environment, 1 to 1000. The next changes can
	// only be applied. Absent means no limit.
	// +optional
	MaxDismissals *int32 `json:"maxDismissals,omitempty"`
	// trackingMarks are labels and annotations by which tools identify objects that they own. Environments remove them
	// from copies, from the next sync on, in addition to those of the server's flag --environment-tracking-marks. Each is
	// a key (example.com/owner), a key with its value (example.com/owner=tool) or all keys of a domain (example.com/*). A
	// label that a selector uses is kept. At most 100.
	// +optional
	// +listType=set
	TrackingMarks []string `json:"trackingMarks,omitempty"`
}

// SuspendedWork stops work of whole kinds.
type SuspendedWork struct {
	// environmentAutoSync stops every environment's automatic catalog sync. Prompts are shown instead. Defaults to false.
	// +optional
	EnvironmentAutoSync bool `json:"environmentAutoSync,omitempty"`
	// dependencyAutoSync stops the automatic refresh of ConfigMaps, Secrets and Services. Prompts are shown instead.
	// Defaults to false.
	// +optional
	DependencyAutoSync bool `json:"dependencyAutoSync,omitempty"`
	// catalogNotices stops Events and notifications about changes of catalogs. The changes are still recorded. Defaults
	// to false.
	// +optional
	CatalogNotices bool `json:"catalogNotices,omitempty"`
	// pipelines stops every delivery of SyncPipelines. Pending objects are kept. Defaults to false.
	// +optional
	Pipelines bool `json:"pipelines,omitempty"`
	// notifications stops the sending of NotificationSinks. Notifications are collected meanwhile. Defaults to false.
	// +optional
	Notifications bool `json:"notifications,omitempty"`
}

// Reminders configure when notifications are repeated until a sync, a dismissal or a recovery ends what they are about. Their
// times count from the first notification.
type Reminders struct {
	// after are the times of the first reminders, as durations such as 24h, in ascending order. Each is at least 1m and at
	// most 8760h (one year), and there are at most 10. Defaults to 24h and 72h; an empty list means none.
	// +optional
	// +listType=atomic
	After []metav1.Duration `json:"after,omitzero"`
	// every is the time between further reminders, at least 1h and at most 8760h. 0s means none. Defaults to 168h (a week).
	// +optional
	// +default="168h"
	Every *metav1.Duration `json:"every,omitempty"`
}

// RetryPolicy configures how often and when failed work is retried.
type RetryPolicy struct {
	// maxAttempts is the maximum number of attempts, including the first, 1 to 100. Defaults to 5.
	// +optional
	// +default=5
	MaxAttempts *int32 `json:"maxAttempts,omitempty"`
	// backoff is the time from the first failure to the second attempt, as a duration such as 10s. It doubles with each
	// attempt. At least 1s, at most 1h. Defaults to 10s.
	// +optional
	// +default="10s"
	Backoff *metav1.Duration `json:"backoff,omitempty"`
	// maxBackoff is the longest time between attempts. At least backoff, at most 24h. Defaults to 10m.
	// +optional
	// +default="10m"
	MaxBackoff *metav1.Duration `json:"maxBackoff,omitempty"`
}

// Retention configures how long records are kept. Records with unfinished work are always kept.
type Retention struct {
	// days is the number of days after its last activity when a record expires, 1 to 3650. Defaults to 90.
	// +optional
	// +default=90
	Days *int32 `json:"days,omitempty"`
	// keepPerSubject is the number of newest records of each catalog and environment that are kept as long as it exists,
	// regardless of their age, 0 to 10000. Defaults to 10.
	// +optional
	// +default=10
	KeepPerSubject *int32 `json:"keepPerSubject,omitempty"`
	// maxPerSubject is the maximum number of records of each catalog and environment; beyond it, the oldest are removed
	// before they expire. At least keepPerSubject, 1 to 100000. Defaults to 1000.
	// +optional
	// +default=1000
	MaxPerSubject *int32 `json:"maxPerSubject,omitempty"`
	// archive configures where records are written, as lines of JSON, before they are removed. Absent means that they are
	// not archived.
	// +optional
	Archive *Archive `json:"archive,omitempty"`
}

// ChangeRetention configures how long Changes are kept. Older history is in Git.
type ChangeRetention struct {
	// ttl is how long a Change is kept after the change, as a duration such as 720h. At least 1h, at most 87600h (ten years).
	// Defaults to 720h (30 days).
	// +optional
	// +default="720h"
	TTL *metav1.Duration `json:"ttl,omitempty"`
	// maxTotal is the maximum number of Changes, 1000 to 10000000; beyond it, the oldest are deleted before they expire. Up to a
	// twentieth more are kept for a while. Defaults to 200000.
	// +optional
	// +default=200000
	MaxTotal *int32 `json:"maxTotal,omitempty"`
	// maxPerObject is the maximum number of Changes of one object, 1 to 1000000; beyond it, the oldest are deleted before they
	// expire. More are kept for up to an hour. Defaults to 1000.
	// +optional
	// +default=1000
	MaxPerObject *int32 `json:"maxPerObject,omitempty"`
}

// Archive configures where records are written before they are removed.
type Archive struct {
	// type is File (in a folder of the server, a new file each month) or GitDestination (in the folder of a GitDestination,
	// a new file each time).
	Type ArchiveType `json:"type"`
	// destinationRef names the GitDestination. spec.accessPolicy.allowClusterRules must be true there and in its
	// GitRepoConfig. It is required if type is GitDestination and must be absent otherwise.
	// +optional
	DestinationRef *NamespacedObjectReference `json:"destinationRef,omitempty"`
}

// ArchiveType is the type of an archive.
//
// +enum
type ArchiveType string

const (
	// ArchiveFile is a folder of the server.
	ArchiveFile ArchiveType = "File"
	// ArchiveGitDestination is the folder of a GitDestination.
	ArchiveGitDestination ArchiveType = "GitDestination"
)

// SyncPolicyStatus is the observed state of all catalogs and environments.
type SyncPolicyStatus struct {
	// observedGeneration is the metadata.generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready reports whether the settings are in effect.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// records is the number of stored SyncStatuses.
	// +optional
	Records int64 `json:"records,omitempty"`
	// recordsExpired is the number of SyncStatuses that were removed by retention.
	// +optional
	RecordsExpired int64 `json:"recordsExpired,omitempty"`
	// recordsArchived is the number of SyncStatuses that have been written to the archive.
	// +optional
	RecordsArchived int64 `json:"recordsArchived,omitempty"`
	// syncsWaiting is the number of runs that wait because of maxSyncsPerMinute.
	// +optional
	SyncsWaiting int64 `json:"syncsWaiting,omitempty"`
	// lastRetentionTime is when records were last checked for expiry.
	// +optional
	LastRetentionTime *metav1.Time `json:"lastRetentionTime,omitempty"`
}
