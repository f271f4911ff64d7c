// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestinationStatus records the progress of a GitDestination. It has the name of its GitDestination and is deleted
// with it. The server writes it; it can be read and deleted, but not created or changed.
type GitDestinationStatus struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status GitDestinationRecord
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestinationStatusList is a list of GitDestinationStatuses.
type GitDestinationStatusList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []GitDestinationStatus
}

// GitDestinationRecord is the progress of a destination. Counters that only increase restart at 0 if the record is
// deleted.
type GitDestinationRecord struct {
	State             string
	Branch            string
	Folder            string
	LastCommit        *CommitSummary
	LastPushTime      *metav1.Time
	QueueDepth        int64
	PendingChanges    int64
	OldestPendingTime *metav1.Time
	Objects           int64
	Files             int64
	LastSeedTime      *metav1.Time
	OrphansRemoved    int64
	OrphansHeld       int64
	PushRetries       int64
	LastError         string
	NextAttemptTime   *metav1.Time
	Attribution       AttributionCounts
	LeaseHolder       string
	Owner             *OwnerMarker
	Proposal          *Proposal
	Syncs             []SyncProgress
	Watches           []ResourceTypeWatch
}

// Proposal is a pull request with the changes of a destination.
type Proposal struct {
	Number   int64
	URL      string
	State    ProposalState
	Branch   string
	Changes  int64
	OpenTime metav1.Time
	EndTime  *metav1.Time
	EndedBy  string
}

// ProposalState is the state of a pull request.
type ProposalState string

const (
	// ProposalOpen means that it is open.
	ProposalOpen ProposalState = "Open"
	// ProposalMerged means that it was merged.
	ProposalMerged ProposalState = "Merged"
	// ProposalDeclined means that it was closed without a merge.
	ProposalDeclined ProposalState = "Declined"
	// ProposalEqual means that the server closed it, because there was no difference to the base any more.
	ProposalEqual ProposalState = "Equal"
)

// CommitSummary is the summary of a commit.
type CommitSummary struct {
	SHA     string
	Time    metav1.Time
	Message string
	URL     string
}

// AttributionCounts counts changes by the signal that named their author.
type AttributionCounts struct {
	Audit         int64
	Admission     int64
	ManagedFields int64
	Unknown       int64
}

// OwnerMarker is the content of the file that names the owner of a folder.
type OwnerMarker struct {
	ClusterUID string
	Namespace  string
	Name       string
	Instance   string
	Time       metav1.Time
}

// ResourceTypeWatch is the state of the watch of one resource type.
type ResourceTypeWatch struct {
	ResourceType
	State        WatchState
	Message      string
	Objects      int64
	LastListTime *metav1.Time
}

// WatchState is the state of the watch of a resource type.
type WatchState string

const (
	// WatchStateListing means that the type is being listed and changes are not observed yet.
	WatchStateListing WatchState = "Listing"
	// WatchStateWatching means that changes are observed as they happen.
	WatchStateWatching WatchState = "Watching"
	// WatchStateFailing means that the type cannot currently be listed or watched. It is retried, and files of the type
	// are kept unchanged.
	WatchStateFailing WatchState = "Failing"
)
