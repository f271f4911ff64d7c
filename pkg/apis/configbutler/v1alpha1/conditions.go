// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. Ready, Reconciling and Stalled have the meaning that kstatus gives them; the last two are only there
// while they are true.
const (
	// ConditionReady is true when an object does what its spec says, for the generation observed.
	ConditionReady = "Ready"
	// ConditionReconciling is true while the server is working towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when the server cannot go on without someone changing something.
	ConditionStalled = "Stalled"
	// ConditionOwnershipConflict is true when the marker in a destination's folder names another owner.
	ConditionOwnershipConflict = "OwnershipConflict"
	// ConditionAccessDenied is true when an object refers to one whose accessPolicy does not admit it, and unknown while that
	// one does not exist.
	ConditionAccessDenied = "AccessDenied"
	// ConditionSecretsEncrypted is true when a destination's Secrets are written encrypted.
	ConditionSecretsEncrypted = "SecretsEncrypted"
	// ConditionAuthorsReported is true while API servers report who makes changes, and in time for the commits.
	ConditionAuthorsReported = "AuthorsReported"
	// ConditionSourceReachable is true when the source of a catalog can be read.
	ConditionSourceReachable = "SourceReachable"
	// ConditionWorkloadsMissing is true when the source lacks workloads of a catalog.
	ConditionWorkloadsMissing = "WorkloadsMissing"
	// ConditionPaused is true while changes of the source wait, or are only recorded.
	ConditionPaused = "Paused"
	// ConditionCatalogUpToDate is true when an environment holds what its catalog offers.
	ConditionCatalogUpToDate = "CatalogUpToDate"
	// ConditionDependenciesUpToDate is true when what an environment's workloads refer to is as in the source.
	ConditionDependenciesUpToDate = "DependenciesUpToDate"
	// ConditionSyncing is true while a sync of an environment is being done.
	ConditionSyncing = "Syncing"
	// ConditionConflicted is true while somebody has to decide about fields that were changed in an environment and in its
	// catalog.
	ConditionConflicted = "Conflicted"
	// ConditionHeld is true while automatic syncs of an environment wait that would otherwise begin; the message says what
	// for, such as: window opens 18:00 UTC.
	ConditionHeld = "Held"
	// ConditionObjectsMissing is true while the target of an environment lacks objects that workloads use and that the server does
	// not copy; the message names them.
	ConditionObjectsMissing = "ObjectsMissing"
	// ConditionSinksDelivering is true while every sink of a pipeline takes what it is sent.
	ConditionSinksDelivering = "SinksDelivering"
)

// Reasons that any kind may give.
const (
	// ReasonSucceeded says that everything is as the spec wants it.
	ReasonSucceeded = "Succeeded"
	// ReasonProgressing says that work is under way.
	ReasonProgressing = "Progressing"
	// ReasonSuspended says that the spec asks for nothing to be done.
	ReasonSuspended = "Suspended"
	// ReasonAccessGranted says that the accessPolicy of what is referred to admits this object.
	ReasonAccessGranted = "AccessGranted"
	// ReasonAccessNotGranted says that the accessPolicy of what is referred to does not admit this object.
	ReasonAccessNotGranted = "AccessNotGranted"
)

// Reasons of a GitRepoConfig.
const (
	// ReasonSecretNotFound says that the Secret named does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretInvalid says that the Secret lacks a key or holds something unusable.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonSigningKeyUnusable says that the key in the Secret cannot sign commits: it is none, it is locked, it has expired.
	ReasonSigningKeyUnusable = "SigningKeyUnusable"
	// ReasonURLRefused says that the server's settings do not allow the URL.
	ReasonURLRefused = "URLRefused"
	// ReasonRepositoryUnreachable says that the remote does not answer.
	ReasonRepositoryUnreachable = "RepositoryUnreachable"
	// ReasonRepositoryTooLarge says that the remote sends more than the server reads or holds in memory.
	ReasonRepositoryTooLarge = "RepositoryTooLarge"
	// ReasonRepositoryNotFound says that the remote knows no such repository, or a reference names no GitRepoConfig.
	ReasonRepositoryNotFound = "RepositoryNotFound"
	// ReasonAuthenticationFailed says that the remote refuses the credentials.
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// ReasonWriteDenied says that the remote lets the repository be read and not written.
	ReasonWriteDenied = "WriteDenied"
)

// Reasons of a GitDestination.
const (
	// ReasonRepositoryNotReady says that the GitRepoConfig is not ready; its condition says why.
	ReasonRepositoryNotReady = "RepositoryNotReady"
	// ReasonBranchNotAllowed says that the GitRepoConfig does not allow the branch.
	ReasonBranchNotAllowed = "BranchNotAllowed"
	// ReasonFolderOverlaps says that the folder lies inside or around that of another destination.
	ReasonFolderOverlaps = "FolderOverlaps"
	// ReasonFolderInvalid says that a part of the folder's path is no folder on the branch, or has a name that Git refuses or
	// reads as its own. Such a name is refused when it is set; one that was stored before is not written.
	ReasonFolderInvalid = "FolderInvalid"
	// ReasonIgnoreInvalid says that the spec's ignore rules cannot be read.
	ReasonIgnoreInvalid = "IgnoreInvalid"
	// ReasonPushRejected says that the remote received changes and refused them.
	ReasonPushRejected = "PushRejected"
	// ReasonPushFailed says that changes could not be brought to the remote and are being tried again.
	ReasonPushFailed = "PushFailed"
	// ReasonLeaseHeldElsewhere says that another instance writes the branch.
	ReasonLeaseHeldElsewhere = "LeaseHeldElsewhere"
	// ReasonOwnedByAnother says that the marker in the folder names another owner.
	ReasonOwnedByAnother = "OwnedByAnother"
	// ReasonOwned says that the marker in the folder names this destination.
	ReasonOwned = "Owned"
	// ReasonUnclaimed says that the folder has no marker yet.
	ReasonUnclaimed = "Unclaimed"
	// ReasonRecipientsGiven says that Secrets are encrypted for the recipients in the spec.
	ReasonRecipientsGiven = "RecipientsGiven"
	// ReasonKeyGenerated says that Secrets are encrypted for a key pair that the server made and keeps.
	ReasonKeyGenerated = "KeyGenerated"
	// ReasonKeyUnavailable says that Secrets are encrypted with keys of the server that it cannot find any more, or not
	// read.
	ReasonKeyUnavailable = "KeyUnavailable"
	// ReasonEncryptionUnavailable says that Secrets cannot be encrypted and are left out.
	ReasonEncryptionUnavailable = "EncryptionUnavailable"
	// ReasonSecretsAsIs says that the spec asks for Secrets to be written plainly.
	ReasonSecretsAsIs = "SecretsAsIs"
	// ReasonSecretsOmitted says that the spec asks for Secrets to be left out.
	ReasonSecretsOmitted = "SecretsOmitted"
	// ReasonReported says that reports of who makes changes come in time.
	ReasonReported = "Reported"
	// ReasonAuditSilent says that objects change and no audit event comes.
	ReasonAuditSilent = "AuditSilent"
	// ReasonAuditLate says that audit events come later than changes wait for them.
	ReasonAuditLate = "AuditLate"
)

// Reasons of a WatchRule or ClusterWatchRule.
const (
	// ReasonDestinationNotFound says that the reference names no GitDestination.
	ReasonDestinationNotFound = "DestinationNotFound"
	// ReasonDestinationNotReady says that the GitDestination is refused, suspended or cannot be written; its condition says why.
	ReasonDestinationNotReady = "DestinationNotReady"
	// ReasonNoMatchingTypes says that the cluster has no type that the rule selects.
	ReasonNoMatchingTypes = "NoMatchingTypes"
	// ReasonTypeNotFound says that some of the types that the rule names do not exist; the others are watched.
	ReasonTypeNotFound = "TypeNotFound"
	// ReasonWatchFailed says that some of the types cannot be listed or watched; the others are.
	ReasonWatchFailed = "WatchFailed"
	// ReasonDiscoveryFailed says that the cluster's types could not all be found out.
	ReasonDiscoveryFailed = "DiscoveryFailed"
	// ReasonPermissionLost says that the person or account that made the rule may no longer read what it selects.
	ReasonPermissionLost = "PermissionLost"
)

// Reasons of an AppCatalog.
const (
	// ReasonSourceNotFound says that the source namespace does not exist.
	ReasonSourceNotFound = "SourceNotFound"
	// ReasonSourceUnreachable says that the source cannot be listed or watched now; it is tried again.
	ReasonSourceUnreachable = "SourceUnreachable"
	// ReasonSourceIsServer says that the source is the namespace of this server.
	ReasonSourceIsServer = "SourceIsServer"
	// ReasonSourceIsTarget says that the source is the target of an environment.
	ReasonSourceIsTarget = "SourceIsTarget"
	// ReasonDeletedInSource says that workloads of the catalog have been deleted in the source; the message names them.
	ReasonDeletedInSource = "DeletedInSource"
	// ReasonNeverSeen says that workloads of the catalog have not been in the source yet; the message names them.
	ReasonNeverSeen = "NeverSeen"
	// ReasonPatchFailed says that a patch does not fit what the source holds; the message names patch and workload.
	ReasonPatchFailed = "PatchFailed"
	// ReasonSelectorInvalid says that the spec's workloadSelector cannot be read.
	ReasonSelectorInvalid = "SelectorInvalid"
	// ReasonRecordRefused says that the API refuses what is to be recorded, such as a workload with too long a name.
	ReasonRecordRefused = "RecordRefused"
	// ReasonRevisionNotKept says that what a catalog offered with the revision that its spec pins is not known any more.
	ReasonRevisionNotKept = "RevisionNotKept"
	// ReasonPauseUntil says that the spec's pauseUntil has not passed.
	ReasonPauseUntil = "PauseUntil"
	// ReasonPinned says that the spec pins a revision.
	ReasonPinned = "Pinned"
	// ReasonPreviewOnly says that the spec asks for changes to be recorded only.
	ReasonPreviewOnly = "PreviewOnly"
	// ReasonNotPaused says that the spec neither pauses nor pins the catalog.
	ReasonNotPaused = "NotPaused"
	// ReasonNothingMissing says that the source has the workloads of the catalog, or the target what is not copied.
	ReasonNothingMissing = "NothingMissing"
	// ReasonSourceFollowed says that the source is read and watched.
	ReasonSourceFollowed = "SourceFollowed"
)

// Reasons of an Environment. Pinned, Suspended and PermissionLost come, too.
const (
	// ReasonCatalogNotFound says that the reference names no AppCatalog.
	ReasonCatalogNotFound = "CatalogNotFound"
	// ReasonCatalogNotReady says that the AppCatalog is not ready; its condition says why.
	ReasonCatalogNotReady = "CatalogNotReady"
	// ReasonBaseNotFound says that the reference names no Environment that a Branch can live in.
	ReasonBaseNotFound = "BaseNotFound"
	// ReasonTargetNotFound says that the target namespace does not exist, and is not to be created.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonTargetIsSource says that the target namespace is the source of a catalog.
	ReasonTargetIsSource = "TargetIsSource"
	// ReasonTargetTaken says that the target namespace is that of another environment, or of this server.
	ReasonTargetTaken = "TargetTaken"
	// ReasonUpToDate says that the environment holds what the catalog offers, or what the source has.
	ReasonUpToDate = "UpToDate"
	// ReasonNotSyncing says that no sync is being done.
	ReasonNotSyncing = "NotSyncing"
	// ReasonNoConflicts says that no field was changed in the environment and in the catalog.
	ReasonNoConflicts = "NoConflicts"
	// ReasonNotHeld says that no automatic sync waits that would otherwise begin.
	ReasonNotHeld = "NotHeld"
	// ReasonNotCopied says that the target lacks what workloads use and the server does not copy.
	ReasonNotCopied = "NotCopied"
	// ReasonUnreadable says that the server may not list what it would have to know.
	ReasonUnreadable = "Unreadable"
	// ReasonNeverSynced says that no sync of everything has completed yet.
	ReasonNeverSynced = "NeverSynced"
	// ReasonWorkloadsChanged says that the catalog offers workloads that are not as in the environment.
	ReasonWorkloadsChanged = "WorkloadsChanged"
	// ReasonDependenciesChanged says that what workloads refer to has changed in the source.
	ReasonDependenciesChanged = "DependenciesChanged"
	// ReasonDependenciesMissing says that the source lacks what workloads refer to; the message names it.
	ReasonDependenciesMissing = "DependenciesMissing"
	// ReasonDismissed says that somebody has put aside what is offered.
	ReasonDismissed = "Dismissed"
	// ReasonSyncFailed says that the last sync failed; the message says why.
	ReasonSyncFailed = "SyncFailed"
	// ReasonWorkloadsNotReady says that workloads were applied and do not run as they should.
	ReasonWorkloadsNotReady = "WorkloadsNotReady"
	// ReasonFieldsChangedTwice says that fields were changed in the environment and in the catalog.
	ReasonFieldsChangedTwice = "FieldsChangedTwice"
	// ReasonWindowClosed says that the spec's windows do not let automatic syncs begin now.
	ReasonWindowClosed = "WindowClosed"
	// ReasonRateLimited says that syncs wait in line, because of the SyncPolicy's maxSyncsPerMinute.
	ReasonRateLimited = "RateLimited"
	// ReasonExpired says that the spec's ttl is over and the environment is being deleted.
	ReasonExpired = "Expired"
)

// Reasons of the failure of a run of an environment's sync as a whole. CatalogNotFound, RevisionNotKept and SyncFailed come, too.
const (
	// ReasonInterrupted says that the server stopped during each attempt.
	ReasonInterrupted = "Interrupted"
	// ReasonContended says that others write what the run writes, all the time.
	ReasonContended = "Contended"
	// ReasonForbidden says that the server may not read or write what the run does.
	ReasonForbidden = "Forbidden"
	// ReasonUnreachable says that the API server does not answer, or not now.
	ReasonUnreachable = "Unreachable"
)

// Reasons of the failure of an object in a run of an environment's sync.
const (
	// ReasonSourceMissing says that the source does not have the object.
	ReasonSourceMissing = "SourceMissing"
	// ReasonRefused says that the API server refuses the object.
	ReasonRefused = "Refused"
	// ReasonNotOurs says that an object of the same name is there that the environment has not written.
	ReasonNotOurs = "NotOurs"
	// ReasonBeingDeleted says that an object of the same name is there that is going away.
	ReasonBeingDeleted = "BeingDeleted"
)

// Reasons of a SyncPolicy.
const (
	// ReasonArchiveUnavailable says that records cannot be archived, so that those whose time is over stay.
	ReasonArchiveUnavailable = "ArchiveUnavailable"
)

// Reasons of a SyncPipeline. Suspended, PermissionLost, NoMatchingTypes, TypeNotFound, WatchFailed and DiscoveryFailed come, too.
const (
	// ReasonPipelinesSuspended says that the SyncPolicy stops all pipelines.
	ReasonPipelinesSuspended = "PipelinesSuspended"
	// ReasonDelivering says that every sink takes what it is sent.
	ReasonDelivering = "Delivering"
	// ReasonNothingSent says that nothing has been sent to a sink yet; the message says which.
	ReasonNothingSent = "NothingSent"
	// ReasonDeliveryRetrying says that a sink could not be told and is tried again; the message says which and why.
	ReasonDeliveryRetrying = "DeliveryRetrying"
	// ReasonDeliveryFailed says that a sink could not be told several times in a row and is tried again.
	ReasonDeliveryFailed = "DeliveryFailed"
	// ReasonDeliveryRejected says that a sink refuses what it is sent; the message says which and why.
	ReasonDeliveryRejected = "DeliveryRejected"
	// ReasonDeliveryGivenUp says that a sink has failed as often as its maxAttempts and rests.
	ReasonDeliveryGivenUp = "DeliveryGivenUp"
)
