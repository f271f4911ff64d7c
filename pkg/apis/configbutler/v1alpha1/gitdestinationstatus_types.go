// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:onlyVerbs=get,list,watch,delete,deleteCollection
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// GitDestinationStatus records how far a GitDestination has come. It has the name of its GitDestination and goes when
// that goes. The server writes it; it can be read and deleted, but not created or changed.
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

// GitDestinationRecord is how far a destination has come. Counts that only ever rise start again at 0 when the
// record is deleted.
type GitDestinationRecord struct {
	// state says in one sentence how things are, such as "Up to date" or "Retrying: the remote refused the push".
	// +optional
	State string `json:"state,omitempty"`
	// branch that the destination writes.
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
	// queueDepth is the number of changes that wait for the branch's writer, those of the branch's other
	// destinations included.
	QueueDepth int64 `json:"queueDepth"`
	// pendingChanges is the number of this destination's changes that the remote has not accepted yet.
	PendingChanges int64 `json:"pendingChanges"`
	// oldestPendingTime is when the oldest of the pending changes was seen. Absent when nothing is pending.
	// +optional
	OldestPendingTime *metav1.Time `json:"oldestPendingTime,omitempty"`
	// objects is the number of live objects that map to this destination.
	Objects int64 `json:"objects"`
	// files is the number of managed files in the folder.
	Files int64 `json:"files"`
	// lastSeedTime is when everything that is selected was last listed and compared with the branch.
	// +optional
	LastSeedTime *metav1.Time `json:"lastSeedTime,omitempty"`
	// orphansRemoved is the number of files that have been removed because no object mapped to them.
	OrphansRemoved int64 `json:"orphansRemoved"`
	// orphansHeld is the number of files that no object maps to and that are kept, because prune is Never.
	OrphansHeld int64 `json:"orphansHeld"`
	// pushRetries is the number of pushes that had to be tried again.
	PushRetries int64 `json:"pushRetries"`
	// lastError says what keeps the destination from being up to date. Empty when nothing does.
	// +optional
	LastError string `json:"lastError,omitempty"`
	// nextAttemptTime is when what keeps the destination back is tried again, unless something is changed that may
	// help, or somebody asks for a sync, which is looked at at once. Absent when nothing keeps it back, or no time is set.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`
	// attribution counts by which signal the authors of changes were found.
	// +optional
	Attribution AttributionCounts `json:"attribution,omitempty"`
	// leaseHolder is the installation that holds the lease of the branch.
	// +optional
	LeaseHolder string `json:"leaseHolder,omitempty"`
	// owner is what the marker file in the folder says.
	// +optional
	Owner *OwnerMarker `json:"owner,omitempty"`
	// syncs are the requests to compare the destination that are being carried out, and the last ones that were.
	// +optional
	// +listType=map
	// +listMapKey=id
	Syncs []SyncProgress `json:"syncs,omitempty"`
	// watches tell how each selected resource type is being watched.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=version
	// +listMapKey=resource
	Watches []ResourceTypeWatch `json:"watches,omitempty"`
}

// CommitSummary is a commit in short.
type CommitSummary struct {
	// sha is the commit's hash in hexadecimal.
	SHA string `json:"sha"`
	// time is the commit's committer time.
	Time metav1.Time `json:"time"`
	// message is the first line of the commit's message.
	// +optional
	Message string `json:"message,omitempty"`
	// url is a link to the commit, made with the repository's webURLTemplate. Empty without a template.
	// +optional
	URL string `json:"url,omitempty"`
}

// AttributionCounts counts changes by the signal that told their author.
type AttributionCounts struct {
	// audit counts authors found in the API server's audit events.
	Audit int64 `json:"audit"`
	// admission counts authors found in admission requests.
	Admission int64 `json:"admission"`
	// managedFields counts changes for which only the field manager is known.
	ManagedFields int64 `json:"managedFields"`
	// unknown counts changes that nobody is known for.
	Unknown int64 `json:"unknown"`
}

// OwnerMarker is the content of the file that says whose a folder is.
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

// ResourceTypeWatch is how one resource type is being watched.
type ResourceTypeWatch struct {
	ResourceType `json:",inline"`
	// state is Listing, Watching or Failing.
	State WatchState `json:"state"`
	// message says why, when the state is Failing.
	// +optional
	Message string `json:"message,omitempty"`
	// objects is the number of live objects of the type that map to this destination.
	Objects int64 `json:"objects"`
	// lastListTime is when the type was last listed completely.
	// +optional
	LastListTime *metav1.Time `json:"lastListTime,omitempty"`
}

// WatchState is how far the watch of a resource type has come.
//
// +enum
type WatchState string

const (
	// WatchStateListing means that the type is being listed and its changes are not known yet.
	WatchStateListing WatchState = "Listing"
	// WatchStateWatching means that changes are followed as they happen.
	WatchStateWatching WatchState = "Watching"
	// WatchStateFailing means that the type cannot be listed or watched now. It is tried again, and files of the type are
	// left as they are.
	WatchStateFailing WatchState = "Failing"
)
