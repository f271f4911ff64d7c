// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPolicy holds the settings that all catalogs and environments share. There is one, called default; without it every
// setting has its default.
type SyncPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name must be default.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the user wants.
	// +optional
	Spec SyncPolicySpec `json:"spec,omitempty"`
	// status is what the server found. Only the server writes it.
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

// SyncPolicyName is the name of the one SyncPolicy.
const SyncPolicyName = "default"

// SyncPolicySpec holds the settings.
type SyncPolicySpec struct {
	// suspend stops work of whole kinds at once. What people ask for themselves goes on unless it says otherwise.
	// +optional
	Suspend SuspendedWork `json:"suspend,omitempty"`
	// batchWindow is how long changes of the source are gathered, from the first one on, before they are recorded
	// together, as a duration such as 30s. At least 1s, at most 1h. Defaults to 30s.
	// +optional
	// +default="30s"
	BatchWindow *metav1.Duration `json:"batchWindow,omitempty"`
	// maxSyncsPerMinute is how many runs of environments' syncs begin within a minute; the others wait in order. 1 to
	// 10000. Defaults to 60.
	// +optional
	// +default=60
	MaxSyncsPerMinute *int32 `json:"maxSyncsPerMinute,omitempty"`
	// retry says how often and when what failed is tried again, before someone has to look at it.
	// +optional
	Retry RetryPolicy `json:"retry,omitempty"`
	// retention says how long SyncStatuses are kept.
	// +optional
	Retention Retention `json:"retention,omitempty"`
	// maxDismissals is how many prompts in a row can be dismissed for one environment, 1 to 1000. The next one can only
	// be taken. Absent means any number.
	// +optional
	MaxDismissals *int32 `json:"maxDismissals,omitempty"`
	// trackingMarks are labels and annotations by which tools find what they own. Environments leave them out of copies, from
	// the next sync on, beside those of the server's flag --environment-tracking-marks. Each is a key (example.com/owner), a
	// key with its value (example.com/owner=tool) or all keys of a domain (example.com/*). A label that a selector uses stays.
	// At most 100.
	// +optional
	// +listType=set
	TrackingMarks []string `json:"trackingMarks,omitempty"`
}

// SuspendedWork stops work of whole kinds at once.
type SuspendedWork struct {
	// environmentAutoSync stops every environment's automatic catalog sync. Prompts are shown instead. Defaults to false.
	// +optional
	EnvironmentAutoSync bool `json:"environmentAutoSync,omitempty"`
	// dependencyAutoSync stops the automatic refresh of ConfigMaps, Secrets and Services. Prompts are shown instead.
	// Defaults to false.
	// +optional
	DependencyAutoSync bool `json:"dependencyAutoSync,omitempty"`
	// catalogNotices stops Events and notifications about changes of catalogs. They are recorded all the same. Defaults to
	// false.
	// +optional
	CatalogNotices bool `json:"catalogNotices,omitempty"`
	// pipelines stops every delivery of SyncPipelines. What is to be delivered waits. Defaults to false.
	// +optional
	Pipelines bool `json:"pipelines,omitempty"`
}

// RetryPolicy says how often and when what failed is tried again.
type RetryPolicy struct {
	// maxAttempts is how often something is tried, the first time included, 1 to 100. Defaults to 5.
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

// Retention says how long records are kept. Those that somebody or something still works on are kept in any case.
type Retention struct {
	// days is how long after something was last done about it a record goes, 1 to 3650. Defaults to 90.
	// +optional
	// +default=90
	Days *int32 `json:"days,omitempty"`
	// keepPerSubject is how many of the newest records of each catalog and environment stay as long as it exists, however
	// old they are, 0 to 10000. Defaults to 10.
	// +optional
	// +default=10
	KeepPerSubject *int32 `json:"keepPerSubject,omitempty"`
	// maxPerSubject is how many records of each catalog and environment there may be; beyond it the oldest go before
	// their time. At least keepPerSubject, 1 to 100000. Defaults to 1000.
	// +optional
	// +default=1000
	MaxPerSubject *int32 `json:"maxPerSubject,omitempty"`
	// archive says where records are written, as lines of JSON, before they go. Absent means nowhere.
	// +optional
	Archive *Archive `json:"archive,omitempty"`
}

// Archive says where records are written before they go.
type Archive struct {
	// type is File (in a folder of the server, a new file each month) or GitDestination (in the folder of a GitDestination,
	// a new file each time).
	Type ArchiveType `json:"type"`
	// destinationRef names the GitDestination. spec.accessPolicy.allowClusterRules has to be true there and in its
	// GitRepoConfig. It is required when type is GitDestination and must be absent otherwise.
	// +optional
	DestinationRef *NamespacedObjectReference `json:"destinationRef,omitempty"`
}

// ArchiveType is a place to write records to.
//
// +enum
type ArchiveType string

const (
	// ArchiveFile is a folder of the server.
	ArchiveFile ArchiveType = "File"
	// ArchiveGitDestination is the folder of a GitDestination.
	ArchiveGitDestination ArchiveType = "GitDestination"
)

// SyncPolicyStatus is what the server found out about all catalogs and environments.
type SyncPolicyStatus struct {
	// observedGeneration is the metadata.generation that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready says whether the settings are in force.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// records is the number of SyncStatuses that are kept.
	// +optional
	Records int64 `json:"records,omitempty"`
	// recordsExpired is the number of SyncStatuses that have gone by retention.
	// +optional
	RecordsExpired int64 `json:"recordsExpired,omitempty"`
	// recordsArchived is the number of SyncStatuses that have been written to the archive.
	// +optional
	RecordsArchived int64 `json:"recordsArchived,omitempty"`
	// syncsWaiting is the number of runs that wait because of maxSyncsPerMinute.
	// +optional
	SyncsWaiting int64 `json:"syncsWaiting,omitempty"`
	// lastRetentionTime is when records were last looked through for those that are too old.
	// +optional
	LastRetentionTime *metav1.Time `json:"lastRetentionTime,omitempty"`
}
