// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncPolicy holds the settings that all catalogs and environments share. There is one, called default; without it every
// setting has its default.
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

// SyncPolicyName is the name of the one SyncPolicy.
const SyncPolicyName = "default"

// SyncPolicySpec holds the settings.
type SyncPolicySpec struct {
	Suspend           SuspendedWork
	BatchWindow       *metav1.Duration
	MaxSyncsPerMinute *int32
	Retry             RetryPolicy
	Retention         Retention
	MaxDismissals     *int32
	TrackingMarks     []string
}

// SuspendedWork stops work of whole kinds at once.
type SuspendedWork struct {
	EnvironmentAutoSync bool
	DependencyAutoSync  bool
	CatalogNotices      bool
	Pipelines           bool
}

// RetryPolicy says how often and when what failed is tried again.
type RetryPolicy struct {
	MaxAttempts *int32
	Backoff     *metav1.Duration
	MaxBackoff  *metav1.Duration
}

// Retention says how long records are kept. Those that somebody or something still works on are kept in any case.
type Retention struct {
	Days           *int32
	KeepPerSubject *int32
	MaxPerSubject  *int32
	Archive        *Archive
}

// Archive says where records are written before they go.
type Archive struct {
	Type           ArchiveType
	DestinationRef *NamespacedObjectReference
}

// ArchiveType is a place to write records to.
type ArchiveType string

const (
	// ArchiveFile is a folder of the server.
	ArchiveFile ArchiveType = "File"
	// ArchiveGitDestination is the folder of a GitDestination.
	ArchiveGitDestination ArchiveType = "GitDestination"
)

// SyncPolicyStatus is what the server found out about all catalogs and environments.
type SyncPolicyStatus struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
	Records            int64
	RecordsExpired     int64
	RecordsArchived    int64
	SyncsWaiting       int64
	LastRetentionTime  *metav1.Time
}
