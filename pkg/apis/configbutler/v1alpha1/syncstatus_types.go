// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=get,list,watch,delete,deleteCollection
// +genclient:method=Dismiss,verb=create,subresource=dismiss,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Dismissal,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Dismissal
// +genclient:method=Retry,verb=create,subresource=retry,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Retry,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.Retry
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncStatus records one change of a catalog, one run of an environment's sync, or one change of what an environment
// depends on: what changed, by whom, and what became of it. It outlives its subject, until its retention ends. The server
// writes it; it can be read and deleted, but not created or changed.
type SyncStatus struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name is that of the subject, a hyphen and five characters; the label
	// configbutler.ai/catalog or configbutler.ai/environment is the subject's name.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says what the record is about. It never changes.
	Spec SyncStatusSpec `json:"spec"`
	// status is what happened.
	// +optional
	Status SyncRecord `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncStatusList is a list of SyncStatuses.
type SyncStatusList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []SyncStatus `json:"items"`
}

// SyncStatusSpec says what a record is about.
type SyncStatusSpec struct {
	// type is Catalog (a change of a catalog), Environment (a run that brings an environment to its catalog) or Dependency
	// (a change of ConfigMaps, Secrets and Services that an environment's workloads refer to).
	Type SyncType `json:"type"`
	// subject is the catalog or environment.
	Subject SyncSubject `json:"subject"`
	// batch tells the record from others of its subject. What happened together is one batch, and a batch is recorded
	// once, however often the server is interrupted.
	Batch string `json:"batch"`
}

// SyncType is what a record is about.
//
// +enum
type SyncType string

const (
	// SyncTypeCatalog is about a change of a catalog.
	SyncTypeCatalog SyncType = "Catalog"
	// SyncTypeEnvironment is about a run that brings an environment to its catalog.
	SyncTypeEnvironment SyncType = "Environment"
	// SyncTypeDependency is about a change of what an environment's workloads refer to.
	SyncTypeDependency SyncType = "Dependency"
)

// SyncSubject names what a record is about, in the record's namespace.
type SyncSubject struct {
	// kind is AppCatalog or Environment.
	Kind SubjectKind `json:"kind"`
	// name of the object.
	Name string `json:"name"`
	// uid of the object. Another object of the same name has another.
	UID types.UID `json:"uid"`
}

// SubjectKind is a kind of objects that records are about.
//
// +enum
type SubjectKind string

const (
	// SubjectAppCatalog is the subject of records of the type Catalog.
	SubjectAppCatalog SubjectKind = "AppCatalog"
	// SubjectEnvironment is the subject of records of the types Environment and Dependency.
	SubjectEnvironment SubjectKind = "Environment"
)

// SyncRecord is what happened to a subject.
type SyncRecord struct {
	// state is how far it has come. A catalog's record is AutoApplied, Applied, Failed, Retrying, ManualIntervention or
	// Dismissed; an environment's is Pending, InProgress, Completed, Conflicted, Superseded, Failed, Retrying,
	// ManualIntervention or Dismissed; that of dependencies Pending, InProgress, Completed, Superseded, Failed, Retrying,
	// ManualIntervention or Dismissed.
	State SyncState `json:"state"`
	// preview says that the change was only recorded: its catalog has previewOnly set, or its environment shadow.
	// +optional
	Preview bool `json:"preview,omitempty"`
	// actor is the user whose request this is, as authenticated. Empty when the server did it by itself.
	// +optional
	Actor string `json:"actor,omitempty"`
	// requestedBy is the user who asked last for an environment's run to begin or be tried again, as authenticated then. The
	// run copies Secrets only while that user may read them, unless the catalog shares them. Absent when no user asked, and
	// once the record has come to its end.
	// +optional
	RequestedBy *AutomatedBy `json:"requestedBy,omitempty"`
	// autoTriggered says that the server did it by itself.
	// +optional
	AutoTriggered bool `json:"autoTriggered,omitempty"`
	// action is what an environment's run does. Empty in other records.
	// +optional
	Action SyncAction `json:"action,omitempty"`
	// revision is the catalog's revision that a change has made or that a run brings. 0 when there is none.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// fromRevision is the catalog's revision that the environment held when a run began. 0 when there was none, and in other
	// records.
	// +optional
	FromRevision int64 `json:"fromRevision,omitempty"`
	// force says that the user asked for a run although windows or a pin hold syncs back, and for objects to be taken over
	// that the environment had not written.
	// +optional
	Force bool `json:"force,omitempty"`
	// changedBy are those who changed the source, as far as it is known, the one with the most changes first.
	// +optional
	// +listType=atomic
	ChangedBy []SourceAuthor `json:"changedBy,omitempty"`
	// commits hold the change, where a GitDestination mirrors the source: the newest 100, the newest first. Those that a
	// remote takes later are added then, for 7 days.
	// +optional
	// +listType=atomic
	Commits []MirroredCommit `json:"commits,omitempty"`
	// workloadCount is the number of distinct workloads that changed.
	// +optional
	WorkloadCount int32 `json:"workloadCount,omitempty"`
	// workloadNames are the names of the workloads that changed, in order, each once; at most 1000.
	// +optional
	// +listType=atomic
	WorkloadNames []string `json:"workloadNames,omitempty"`
	// resourceSummaries say what changed, object by object; at most 1000.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=namespace
	// +listMapKey=name
	ResourceSummaries []ResourceSummary `json:"resourceSummaries,omitempty"`
	// detectedAt is when the first of the changes was seen, or the request was made.
	DetectedAt metav1.Time `json:"detectedAt"`
	// startedAt is when work first began. Absent before.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// resolvedAt is when the record came to its end: Completed, Superseded or Dismissed. Absent before.
	// +optional
	ResolvedAt *metav1.Time `json:"resolvedAt,omitempty"`
	// resolvedBy is the user who brought it to its end, as authenticated. Empty when the server did.
	// +optional
	ResolvedBy string `json:"resolvedBy,omitempty"`
	// progress counts the objects of a run.
	// +optional
	Progress *Progress `json:"progress,omitempty"`
	// attempts is how often work has begun.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// error is what went wrong last. Absent when nothing did, or it was put right.
	// +optional
	Error *SyncError `json:"error,omitempty"`
	// failures are the objects that could not be dealt with, while others were, in the last attempt; at most 100.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=namespace
	// +listMapKey=name
	Failures []ObjectFailure `json:"failures,omitempty"`
	// warnings are sentences about what a run did not do, such as to copy the data of a PersistentVolumeClaim; at most 100.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
}

// SyncState is how far a record has come.
//
// +enum
type SyncState string

const (
	// SyncStateAutoApplied means that the source changed and the catalog took it over.
	SyncStateAutoApplied SyncState = "AutoApplied"
	// SyncStateApplied means that an editor changed the catalog.
	SyncStateApplied SyncState = "Applied"
	// SyncStatePending means that work has not begun.
	SyncStatePending SyncState = "Pending"
	// SyncStateInProgress means that work is being done.
	SyncStateInProgress SyncState = "InProgress"
	// SyncStateCompleted means that all has been done.
	SyncStateCompleted SyncState = "Completed"
	// SyncStateConflicted means that a field was changed in the environment and in the catalog.
	SyncStateConflicted SyncState = "Conflicted"
	// SyncStateFailed means that something could not be done.
	SyncStateFailed SyncState = "Failed"
	// SyncStateRetrying means that what failed is tried again.
	SyncStateRetrying SyncState = "Retrying"
	// SyncStateManualIntervention means that someone has to look at it.
	SyncStateManualIntervention SyncState = "ManualIntervention"
	// SyncStateDismissed means that someone has put it aside.
	SyncStateDismissed SyncState = "Dismissed"
	// SyncStateSuperseded means that a newer record has taken its place.
	SyncStateSuperseded SyncState = "Superseded"
)

// SyncAction is what a run of an environment's sync does.
//
// +enum
type SyncAction string

const (
	// SyncActionCatalog brings workloads to what the catalog offers, with what they depend on.
	SyncActionCatalog SyncAction = "Catalog"
	// SyncActionCluster refreshes what the environment's workloads depend on and leaves them alone.
	SyncActionCluster SyncAction = "Cluster"
	// SyncActionAll does the one and then the other.
	SyncActionAll SyncAction = "All"
)

// SourceAuthor is someone who changed the source, and how that is known.
type SourceAuthor struct {
	// username is the Kubernetes user. Empty when the signal is ManagedFields or Unknown.
	// +optional
	Username string `json:"username,omitempty"`
	// name of the user, as far as the identity provider tells it.
	// +optional
	Name string `json:"name,omitempty"`
	// email of the user, as far as the identity provider tells it.
	// +optional
	Email string `json:"email,omitempty"`
	// impersonatedBy is the user behind an impersonated one.
	// +optional
	ImpersonatedBy string `json:"impersonatedBy,omitempty"`
	// fieldManager is the tool that wrote the change, when the signal is ManagedFields.
	// +optional
	FieldManager string `json:"fieldManager,omitempty"`
	// signal is what told: Audit (the API server's audit events), Admission (its admission requests), ManagedFields (the
	// tool is known, not the user) or Unknown.
	Signal AttributionSignal `json:"signal"`
	// workloads is the number of distinct workloads that they changed.
	// +optional
	Workloads int32 `json:"workloads,omitempty"`
}

// AttributionSignal is what told who made a change.
//
// +enum
type AttributionSignal string

const (
	// SignalAudit is an API server's audit event.
	SignalAudit AttributionSignal = "Audit"
	// SignalAdmission is an API server's admission request.
	SignalAdmission AttributionSignal = "Admission"
	// SignalManagedFields is the tool that an object says was the last to write it.
	SignalManagedFields AttributionSignal = "ManagedFields"
	// SignalUnknown says that nothing told.
	SignalUnknown AttributionSignal = "Unknown"
)

// MirroredCommit is a commit that holds a change of the source.
type MirroredCommit struct {
	CommitSummary `json:",inline"`
	// destinationRef names the GitDestination that the commit was made for.
	DestinationRef NamespacedObjectReference `json:"destinationRef"`
}

// ResourceSummary says that an object changed.
type ResourceSummary struct {
	// type is the kind of the object, such as ConfigMap.
	Type string `json:"type"`
	// namespace of the object.
	Namespace string `json:"namespace"`
	// name of the object.
	Name string `json:"name"`
	// changeType is Added, Changed or Removed.
	ChangeType ChangeType `json:"changeType"`
}

// ObjectFailure says why an object could not be dealt with.
type ObjectFailure struct {
	// type is the kind of the object, such as ConfigMap.
	Type string `json:"type"`
	// namespace of the object that was missing or refused.
	Namespace string `json:"namespace"`
	// name of the object.
	Name string `json:"name"`
	// reason is a word for programs, such as SourceMissing.
	Reason string `json:"reason"`
	// message is a sentence for people, at most 512 bytes. It never holds the content of a Secret.
	Message string `json:"message"`
}

// ChangeType is how an object, or a field of it, changed.
//
// +enum
type ChangeType string

const (
	// ChangeAdded means that the object is new.
	ChangeAdded ChangeType = "Added"
	// ChangeChanged means that the object's content is another.
	ChangeChanged ChangeType = "Changed"
	// ChangeRemoved means that the object is gone.
	ChangeRemoved ChangeType = "Removed"
)

// Progress counts the objects of a run.
type Progress struct {
	// done is the number of objects that have been dealt with.
	Done int32 `json:"done"`
	// total is the number of objects to deal with.
	Total int32 `json:"total"`
}

// SyncError says what went wrong.
type SyncError struct {
	// reason is a word for programs, such as SourceNotFound.
	Reason string `json:"reason"`
	// message is a sentence for people. It never holds the content of a Secret.
	Message string `json:"message"`
	// at is when it went wrong.
	At metav1.Time `json:"at"`
}
