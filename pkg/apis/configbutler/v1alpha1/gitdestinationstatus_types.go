// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:onlyVerbs=get,list,watch,delete,deleteCollection
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestinationStatus records the progress of a GitDestination. It has the name of its GitDestination and is deleted
// with it. The server writes it; it can be read and deleted, but not created or changed.
type GitDestinationStatus struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the record.
	// +optional
	Status GitDestinationRecord `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestinationStatusList is a list of GitDestinationStatuses.
type GitDestinationStatusList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []GitDestinationStatus `json:"items"`
}

// GitDestinationRecord is the progress of a destination. Counters that only increase restart at 0 if the record is
// deleted.
type GitDestinationRecord struct {
	// state summarizes the status in one sentence, such as "Up to date" or "Not mirrored: the remote refused the push".
	// +optional
	State string `json:"state,omitempty"`
	// branch that the destination writes, or the base of its pull requests.
	// +optional
	Branch string `json:"branch,omitempty"`
	// folder that the destination writes; empty is the repository's root.
	// +optional
	Folder string `json:"folder,omitempty"`
	// lastCommit is the newest commit that the remote has accepted for this destination.
	// +optional
	LastCommit *CommitSummary `json:"lastCommit,omitempty"`
	// lastPushTime is when the remote last accepted a push for this destination.
	// +optional
	LastPushTime *metav1.Time `json:"lastPushTime,omitempty"`
	// queueDepth is the number of changes that wait for the branch's writer, including those of the branch's other
	// destinations.
	QueueDepth int64 `json:"queueDepth"`
	// pendingChanges is the number of this destination's changes that the remote has not accepted yet.
	PendingChanges int64 `json:"pendingChanges"`
	// oldestPendingTime is when the oldest of the pending changes was observed. Absent if none is pending.
	// +optional
	OldestPendingTime *metav1.Time `json:"oldestPendingTime,omitempty"`
	// objects is the number of live objects that map to this destination.
	Objects int64 `json:"objects"`
	// files is the number of managed files in the folder.
	Files int64 `json:"files"`
	// lastSeedTime is when all selected objects were last listed and compared with the branch.
	// +optional
	LastSeedTime *metav1.Time `json:"lastSeedTime,omitempty"`
	// orphansRemoved is the number of files that have been removed because they had no object.
	OrphansRemoved int64 `json:"orphansRemoved"`
	// orphansHeld is the number of files without an object that are kept because prune is Never.
	OrphansHeld int64 `json:"orphansHeld"`
	// pushRetries is the number of retried pushes.
	PushRetries int64 `json:"pushRetries"`
	// lastError is the error that prevents the destination from being up to date. Empty if there is none.
	// +optional
	LastError string `json:"lastError,omitempty"`
	// nextAttemptTime is when the failed operation is retried. A relevant change or a requested sync retries it
	// immediately. Absent if nothing failed, or no retry is scheduled.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`
	// attribution counts changes by the signal that named their author.
	// +optional
	Attribution AttributionCounts `json:"attribution,omitempty"`
	// leaseHolder is the installation that holds the lease of the branch.
	// +optional
	LeaseHolder string `json:"leaseHolder,omitempty"`
	// owner is the content of the marker file in the folder.
	// +optional
	Owner *OwnerMarker `json:"owner,omitempty"`
	// proposal is the newest pull request of the destination. Absent if there was none, or changes are delivered by pushes.
	// +optional
	Proposal *Proposal `json:"proposal,omitempty"`
	// syncs are the requested comparisons that are in progress, and the last ones that were completed.
	// +optional
	// +listType=map
	// +listMapKey=id
	Syncs []SyncProgress `json:"syncs,omitempty"`
	// watches report the state of the watch of each selected resource type.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=version
	// +listMapKey=resource
	Watches []ResourceTypeWatch `json:"watches,omitempty"`
}

// Proposal is a pull request with the changes of a destination.
type Proposal struct {
	// number of the pull request at the host.
	Number int64 `json:"number"`
	// url of its page.
	// +optional
	URL string `json:"url,omitempty"`
	// state is Open, Merged, Declined or Equal.
	State ProposalState `json:"state"`
	// branch with its commits.
	Branch string `json:"branch"`
	// changes is the number of files that differ from the base while it is open, and the number at its end.
	Changes int64 `json:"changes"`
	// openTime is when it was opened.
	OpenTime metav1.Time `json:"openTime"`
	// endTime is when it was merged or closed. Absent while it is open.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// endedBy is the name, at the host, of the user who merged or closed it. Empty if the host does not say.
	// +optional
	EndedBy string `json:"endedBy,omitempty"`
}

// ProposalState is the state of a pull request.
//
// +enum
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
	// sha is the commit's hash in hexadecimal.
	SHA string `json:"sha"`
	// time is the commit's committer time.
	Time metav1.Time `json:"time"`
	// message is the first line of the commit's message.
	// +optional
	Message string `json:"message,omitempty"`
	// url is a link to the commit according to the repository's webURLTemplate. Empty without a template.
	// +optional
	URL string `json:"url,omitempty"`
}

// AttributionCounts counts changes by the signal that named their author.
type AttributionCounts struct {
	// audit counts authors found in the API server's audit events.
	Audit int64 `json:"audit"`
	// admission counts authors found in admission requests.
	Admission int64 `json:"admission"`
	// managedFields counts changes for which only the field manager is known.
	ManagedFields int64 `json:"managedFields"`
	// unknown counts changes without a known author.
	Unknown int64 `json:"unknown"`
}

// OwnerMarker is the content of the file that names the owner of a folder.
type OwnerMarker struct {
	// clusterUID is the uid of the owner's namespace kube-system.
	ClusterUID string `json:"clusterUID"`
	// namespace of the owning GitDestination.
	Namespace string `json:"namespace"`
	// name of the owning GitDestination.
	Name string `json:"name"`
	// instance is the installation that wrote the marker: namespace and name of its leader's Lease.
	Instance string `json:"instance"`
	// time is when the marker was written.
	Time metav1.Time `json:"time"`
}

// ResourceTypeWatch is the state of the watch of one resource type.
type ResourceTypeWatch struct {
	ResourceType `json:",inline"`
	// state is Listing, Watching or Failing.
	State WatchState `json:"state"`
	// message is the error, if the state is Failing.
	// +optional
	Message string `json:"message,omitempty"`
	// objects is the number of live objects of the type that map to this destination.
	Objects int64 `json:"objects"`
	// lastListTime is when the type was last listed completely.
	// +optional
	LastListTime *metav1.Time `json:"lastListTime,omitempty"`
}

// WatchState is the state of the watch of a resource type.
//
// +enum
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
