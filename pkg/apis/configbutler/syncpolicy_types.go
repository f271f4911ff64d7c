// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPolicy holds the settings that all catalogs and environments share. There is one, called default; without it, all
// settings have their defaults.
type SyncPolicy struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   SyncPolicySpec
	Status SyncPolicyStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPolicyList is a list of SyncPolicies.
type SyncPolicyList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []SyncPolicy
}

// SyncPolicyName is the name of the only SyncPolicy.
const SyncPolicyName = "default"

// SyncPolicySpec holds the settings.
type SyncPolicySpec struct {
	Suspend           SuspendedWork
	BatchWindow       *metav1.Duration
	MaxSyncsPerMinute *int32
	Retry             RetryPolicy
	Retention         Retention
	Changes           ChangeRetention
	Reminders         Reminders
	MaxDismissals     *int32
	TrackingMarks     []string
}

// SuspendedWork stops work of whole kinds.
type SuspendedWork struct {
	EnvironmentAutoSync bool
	DependencyAutoSync  bool
	CatalogNotices      bool
	Pipelines           bool
	Notifications       bool
}

// Reminders configure when notifications are repeated until a sync, a dismissal or a recovery ends what they are about.
type Reminders struct {
	After []metav1.Duration
	Every *metav1.Duration
}

// RetryPolicy configures how often and when failed work is retried.
type RetryPolicy struct {
	MaxAttempts *int32
	Backoff     *metav1.Duration
	MaxBackoff  *metav1.Duration
}

// ChangeRetention configures how long Changes are kept. Older history is in Git.
type ChangeRetention struct {
	TTL          *metav1.Duration
	MaxTotal     *int32
	MaxPerObject *int32
}

// Retention configures how long records are kept. Records with unfinished work are always kept.
type Retention struct {
	Days           *int32
	KeepPerSubject *int32
	MaxPerSubject  *int32
	Archive        *Archive
}

// Archive configures where records are written before they are removed.
type Archive struct {
	Type           ArchiveType
	DestinationRef *NamespacedObjectReference
}

// ArchiveType is the type of an archive.
type ArchiveType string

const (
	// ArchiveFile is a folder of the server.
	ArchiveFile ArchiveType = "File"
	// ArchiveGitDestination is the folder of a GitDestination.
	ArchiveGitDestination ArchiveType = "GitDestination"
)

// SyncPolicyStatus is the observed state of all catalogs and environments.
type SyncPolicyStatus struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
	Records            int64
	RecordsExpired     int64
	RecordsArchived    int64
	SyncsWaiting       int64
	LastRetentionTime  *metav1.Time
}
