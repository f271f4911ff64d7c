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

// SyncStatus records one change of a catalog, one run of an environment's sync, or one change of an environment's
// dependencies: what changed, by whom, and the result. It is kept after its subject is deleted, until its retention ends.
// The server writes it; it can be read and deleted, but not created or changed.
type SyncStatus struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name is that of the subject, a hyphen and five characters; the label
	// configbutler.ai/catalog or configbutler.ai/environment is the subject's name.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec identifies the subject of the record. It is immutable.
	Spec SyncStatusSpec `json:"spec"`
	// status is the recorded result.
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

// SyncStatusSpec identifies the subject of a record.
type SyncStatusSpec struct {
	// type is Catalog (a change of a catalog), Environment (a run that syncs an environment with its catalog) or
	// Dependency (a change of ConfigMaps, Secrets and Services that an environment's workloads refer to).
	Type SyncType `json:"type"`
	// subject is the catalog or environment.
	Subject SyncSubject `json:"subject"`
	// batch identifies the record among those of its subject. Changes that are processed together are one batch, and a
	// batch is recorded once, even if the server is interrupted.
	Batch string `json:"batch"`
}

// SyncType is the type of a record.
//
// +enum
type SyncType string

const (
	// SyncTypeCatalog is a change of a catalog.
	SyncTypeCatalog SyncType = "Catalog"
	// SyncTypeEnvironment is a run that syncs an environment with its catalog.
	SyncTypeEnvironment SyncType = "Environment"
	// SyncTypeDependency is a change of objects that an environment's workloads refer to.
	SyncTypeDependency SyncType = "Dependency"
)

// SyncSubject names the subject of a record, in the record's namespace.
type SyncSubject struct {
	// kind is AppCatalog or Environment.
	Kind SubjectKind `json:"kind"`
	// name of the object.
	Name string `json:"name"`
	// uid of the object, which differs from that of a later object of the same name.
	UID types.UID `json:"uid"`
}

// SubjectKind is the kind of the subject of a record.
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
	// state is the progress. A catalog's record is AutoApplied, Applied, Failed, Retrying, ManualIntervention or
	// Dismissed; an environment's is Pending, InProgress, Completed, Conflicted, Superseded, Failed, Retrying,
	// ManualIntervention or Dismissed; that of dependencies Pending, InProgress, Completed, Superseded, Failed, Retrying,
	// ManualIntervention or Dismissed.
	State SyncState `json:"state"`
	// preview means that the change was only recorded: its catalog has previewOnly set, or its environment shadow.
	// +optional
	Preview bool `json:"preview,omitempty"`
	// actor is the user who requested it, as authenticated. Empty if the server started it automatically.
	// +optional
	Actor string `json:"actor,omitempty"`
	// requestedBy is the user who last requested that an environment's run begins or is retried, as authenticated then.
	// The run copies Secrets only while that user may read them, unless the catalog shares them. Absent if no user
	// requested it, and once the record is resolved.
	// +optional
	RequestedBy *AutomatedBy `json:"requestedBy,omitempty"`
	// autoTriggered means that the server started it automatically.
	// +optional
	AutoTriggered bool `json:"autoTriggered,omitempty"`
	// action is the action of an environment's run. Empty in other records.
	// +optional
	Action SyncAction `json:"action,omitempty"`
	// revision is the catalog's revision that a change created or that a run applies. 0 if there is none.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// fromRevision is the catalog's revision that the environment held when a run began. 0 if there was none, and in
	// other records.
	// +optional
	FromRevision int64 `json:"fromRevision,omitempty"`
	// force means that the user requested the run in spite of windows or a pin, and that objects are taken over that the
	// environment had not written.
	// +optional
	Force bool `json:"force,omitempty"`
	// changedBy are the authors of the changes in the source, as far as known, the one with the most changes first.
	// +optional
	// +listType=atomic
	ChangedBy []SourceAuthor `json:"changedBy,omitempty"`
	// commits contain the change, if a GitDestination mirrors the source: the newest 100, the newest first. Commits that
	// a remote accepts later are added, for 7 days.
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
	// resourceSummaries list the changed objects; at most 1000.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=namespace
	// +listMapKey=name
	ResourceSummaries []ResourceSummary `json:"resourceSummaries,omitempty"`
	// detectedAt is when the first of the changes was observed, or the request was made.
	DetectedAt metav1.Time `json:"detectedAt"`
	// startedAt is when work first began. Absent before.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// resolvedAt is when the record was resolved: Completed, Superseded or Dismissed. Absent before.
	// +optional
	ResolvedAt *metav1.Time `json:"resolvedAt,omitempty"`
	// resolvedBy is the user who resolved it, as authenticated. Empty if the server did.
	// +optional
	ResolvedBy string `json:"resolvedBy,omitempty"`
	// progress counts the objects of a run.
	// +optional
	Progress *Progress `json:"progress,omitempty"`
	// attempts is the number of attempts.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// error is what went wrong last. Absent if nothing did, or it has been resolved.
	// +optional
	Error *SyncError `json:"error,omitempty"`
	// failures are the objects that failed in the last attempt while others succeeded; at most 100.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +listMapKey=namespace
	// +listMapKey=name
	Failures []ObjectFailure `json:"failures,omitempty"`
	// warnings describe what a run did not do, such as copying the data of a PersistentVolumeClaim; at most 100.
	// +optional
	// +listType=atomic
	Warnings []string `json:"warnings,omitempty"`
}

// SyncState is the progress of a record.
//
// +enum
type SyncState string

const (
	// SyncStateAutoApplied means that the source changed and the catalog adopted the change.
	SyncStateAutoApplied SyncState = "AutoApplied"
	// SyncStateApplied means that an editor changed the catalog.
	SyncStateApplied SyncState = "Applied"
	// SyncStatePending means that work has not started.
	SyncStatePending SyncState = "Pending"
	// SyncStateInProgress means that work is in progress.
	SyncStateInProgress SyncState = "InProgress"
	// SyncStateCompleted means that all work is done.
	SyncStateCompleted SyncState = "Completed"
	// SyncStateConflicted means that a field was changed in the environment and in the catalog.
	SyncStateConflicted SyncState = "Conflicted"
	// SyncStateFailed means that work has failed.
	SyncStateFailed SyncState = "Failed"
	// SyncStateRetrying means that failed work is being retried.
	SyncStateRetrying SyncState = "Retrying"
	// SyncStateManualIntervention means that a user must intervene.
	SyncStateManualIntervention SyncState = "ManualIntervention"
	// SyncStateDismissed means that a user has dismissed it.
	SyncStateDismissed SyncState = "Dismissed"
	// SyncStateSuperseded means that a newer record has replaced it.
	SyncStateSuperseded SyncState = "Superseded"
)

// SyncAction is the action of an environment's run.
//
// +enum
type SyncAction string

const (
	// SyncActionCatalog syncs workloads with the catalog, and the objects that they refer to.
	SyncActionCatalog SyncAction = "Catalog"
	// SyncActionCluster refreshes the objects that workloads refer to, but not the workloads.
	SyncActionCluster SyncAction = "Cluster"
	// SyncActionAll performs Catalog, then Cluster.
	SyncActionAll SyncAction = "All"
)

// SourceAuthor is the author of changes in the source, and the signal that named the author.
type SourceAuthor struct {
	// username is the Kubernetes user. Empty if the signal is ManagedFields or Unknown.
	// +optional
	Username string `json:"username,omitempty"`
	// name of the user, if the identity provider sets one.
	// +optional
	Name string `json:"name,omitempty"`
	// email of the user, if the identity provider sets one.
	// +optional
	Email string `json:"email,omitempty"`
	// impersonatedBy is the user who impersonated the user.
	// +optional
	ImpersonatedBy string `json:"impersonatedBy,omitempty"`
	// fieldManager is the tool that wrote the change, when the signal is ManagedFields.
	// +optional
	FieldManager string `json:"fieldManager,omitempty"`
	// signal is the source of the author: Audit (the API server's audit events), Admission (its admission requests),
	// ManagedFields (the tool is known, not the user) or Unknown.
	Signal AttributionSignal `json:"signal"`
	// workloads is the number of distinct workloads that the author changed.
	// +optional
	Workloads int32 `json:"workloads,omitempty"`
}

// AttributionSignal is the source of information about the author of a change.
//
// +enum
type AttributionSignal string

const (
	// SignalAudit is an API server's audit event.
	SignalAudit AttributionSignal = "Audit"
	// SignalAdmission is an API server's admission request.
	SignalAdmission AttributionSignal = "Admission"
	// SignalManagedFields is the field manager that last wrote the object.
	SignalManagedFields AttributionSignal = "ManagedFields"
	// SignalUnknown means that the author is unknown.
	SignalUnknown AttributionSignal = "Unknown"
)

// MirroredCommit is a commit that contains a change of the source.
type MirroredCommit struct {
	CommitSummary `json:",inline"`
	// destinationRef names the GitDestination of the commit.
	DestinationRef NamespacedObjectReference `json:"destinationRef"`
}

// ResourceSummary is a changed object.
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

// ObjectFailure is the failure of an object.
type ObjectFailure struct {
	// type is the kind of the object, such as ConfigMap.
	Type string `json:"type"`
	// namespace of the object that was missing or refused.
	Namespace string `json:"namespace"`
	// name of the object.
	Name string `json:"name"`
	// reason is a machine-readable reason, such as SourceMissing.
	Reason string `json:"reason"`
	// message is human-readable, at most 512 bytes. It never holds the content of a Secret.
	Message string `json:"message"`
}

// ChangeType is the type of a change of an object, or of a field.
//
// +enum
type ChangeType string

const (
	// ChangeAdded means that the object is new.
	ChangeAdded ChangeType = "Added"
	// ChangeChanged means that the object's content differs.
	ChangeChanged ChangeType = "Changed"
	// ChangeRemoved means that the object no longer exists.
	ChangeRemoved ChangeType = "Removed"
)

// Progress counts the objects of a run.
type Progress struct {
	// done is the number of processed objects.
	Done int32 `json:"done"`
	// total is the number of objects to process.
	Total int32 `json:"total"`
}

// SyncError is an error.
type SyncError struct {
	// reason is a machine-readable reason, such as SourceNotFound.
	Reason string `json:"reason"`
	// message is human-readable. It never holds the content of a Secret.
	Message string `json:"message"`
	// at is when it occurred.
	At metav1.Time `json:"at"`
}
