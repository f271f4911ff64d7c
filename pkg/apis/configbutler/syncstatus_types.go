// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncStatus records one change of a catalog, one run of an environment's sync, or one change of an environment's
// dependencies: what changed, by whom, and the result. It is kept after its subject is deleted, until its retention ends.
// The server writes it; it can be read and deleted, but not created or changed.
type SyncStatus struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   SyncStatusSpec
	Status SyncRecord
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// SyncStatusList is a list of SyncStatuses.
type SyncStatusList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []SyncStatus
}

// SyncStatusSpec identifies the subject of a record.
type SyncStatusSpec struct {
	Type    SyncType
	Subject SyncSubject
	Batch   string
}

// SyncType is the type of a record.
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
	Kind SubjectKind
	Name string
	UID  types.UID
}

// SubjectKind is the kind of the subject of a record.
type SubjectKind string

const (
	// SubjectAppCatalog is the subject of records of the type Catalog.
	SubjectAppCatalog SubjectKind = "AppCatalog"
	// SubjectEnvironment is the subject of records of the types Environment and Dependency.
	SubjectEnvironment SubjectKind = "Environment"
)

// SyncRecord is what happened to a subject.
type SyncRecord struct {
	State             SyncState
	Preview           bool
	Actor             string
	RequestedBy       *AutomatedBy
	AutoTriggered     bool
	Action            SyncAction
	Revision          int64
	FromRevision      int64
	Force             bool
	ChangedBy         []SourceAuthor
	Commits           []MirroredCommit
	WorkloadCount     int32
	WorkloadNames     []string
	ResourceSummaries []ResourceSummary
	DetectedAt        metav1.Time
	StartedAt         *metav1.Time
	ResolvedAt        *metav1.Time
	ResolvedBy        string
	Progress          *Progress
	Attempts          int32
	Error             *SyncError
	Failures          []ObjectFailure
	Warnings          []string
}

// SyncState is the progress of a record.
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
	Username       string
	Name           string
	Email          string
	ImpersonatedBy string
	FieldManager   string
	Signal         AttributionSignal
	Workloads      int32
}

// AttributionSignal is the source of information about the author of a change.
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
	CommitSummary
	DestinationRef NamespacedObjectReference
}

// ResourceSummary is a changed object.
type ResourceSummary struct {
	Type       string
	Namespace  string
	Name       string
	ChangeType ChangeType
}

// ObjectFailure is the failure of an object.
type ObjectFailure struct {
	Type      string
	Namespace string
	Name      string
	Reason    string
	Message   string
}

// ChangeType is the type of a change of an object, or of a field.
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
	Done  int32
	Total int32
}

// SyncError is an error.
type SyncError struct {
	Reason  string
	Message string
	At      metav1.Time
}
