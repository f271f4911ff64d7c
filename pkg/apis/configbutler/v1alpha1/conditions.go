// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. Ready, Reconciling and Stalled have their meaning in kstatus; the last two are present only while they
// are true.
const (
	// ConditionReady is true when an object does what its spec says, for the generation observed.
	ConditionReady = "Ready"
	// ConditionReconciling is true while the server is working towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is true when the server cannot continue until a user changes something.
	ConditionStalled = "Stalled"
	// ConditionOwnershipConflict is true when the marker in a destination's folder names another owner.
	ConditionOwnershipConflict = "OwnershipConflict"
	// ConditionAccessDenied is true when an object refers to one whose accessPolicy does not allow it, and unknown while that
	// one does not exist.
	ConditionAccessDenied = "AccessDenied"
	// ConditionSecretsEncrypted is true when a destination's Secrets are written encrypted.
	ConditionSecretsEncrypted = "SecretsEncrypted"
	// ConditionProposalDeclined is true while files of a pull request that was closed without a merge are withheld.
	ConditionProposalDeclined = "ProposalDeclined"
	// ConditionProposalOverdue is true while a pull request is open for longer than the destination allows.
	ConditionProposalOverdue = "ProposalOverdue"
	// ConditionAuthorsReported is true while API servers report the authors of changes, in time for the commits.
	ConditionAuthorsReported = "AuthorsReported"
	// ConditionSourceReachable is true when the source of a catalog can be read.
	ConditionSourceReachable = "SourceReachable"
	// ConditionWorkloadsMissing is true when the source lacks workloads of a catalog.
	ConditionWorkloadsMissing = "WorkloadsMissing"
	// ConditionPaused is true while changes of the source wait, or are only recorded.
	ConditionPaused = "Paused"
	// ConditionCatalogUpToDate is true when an environment holds what its catalog offers.
	ConditionCatalogUpToDate = "CatalogUpToDate"
	// ConditionDependenciesUpToDate is true when the copies of objects that an environment's workloads refer to match the source.
	ConditionDependenciesUpToDate = "DependenciesUpToDate"
	// ConditionSyncing is true while a sync of an environment is in progress.
	ConditionSyncing = "Syncing"
	// ConditionConflicted is true while a user has to resolve conflicts of fields that were changed in an environment and
	// in its catalog.
	ConditionConflicted = "Conflicted"
	// ConditionHeld is true while automatic syncs of an environment wait that would otherwise begin; the message gives the
	// reason, such as: window opens 18:00 UTC.
	ConditionHeld = "Held"
	// ConditionObjectsMissing is true while the target of an environment lacks objects that workloads use and that the server does
	// not copy; the message names them.
	ConditionObjectsMissing = "ObjectsMissing"
	// ConditionSinksDelivering is true while every sink of a pipeline accepts what it is sent.
	ConditionSinksDelivering = "SinksDelivering"
	// ConditionDelivering is true if a NotificationSink has delivered its last message.
	ConditionDelivering = "Delivering"
)

// Reasons of all kinds.
const (
	// ReasonSucceeded means that everything matches the spec.
	ReasonSucceeded = "Succeeded"
	// ReasonProgressing means that work is in progress.
	ReasonProgressing = "Progressing"
	// ReasonSuspended means that the spec suspends the object.
	ReasonSuspended = "Suspended"
	// ReasonAccessGranted means that the accessPolicy of the referenced object allows this object.
	ReasonAccessGranted = "AccessGranted"
	// ReasonAccessNotGranted means that the accessPolicy of the referenced object does not allow this object.
	ReasonAccessNotGranted = "AccessNotGranted"
)

// Reasons of a GitRepoConfig.
const (
	// ReasonSecretNotFound means that the Secret named does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretInvalid means that the Secret lacks a key or has an invalid value.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonSigningKeyUnusable means that the key in the Secret cannot sign commits: it is not a key, is locked or has expired.
	ReasonSigningKeyUnusable = "SigningKeyUnusable"
	// ReasonURLRefused means that the server's settings do not allow the URL.
	ReasonURLRefused = "URLRefused"
	// ReasonIdentityNotAllowed means that the server's settings do not allow the namespace to use the server's own identity.
	ReasonIdentityNotAllowed = "IdentityNotAllowed"
	// ReasonRepositoryUnreachable means that the remote does not answer.
	ReasonRepositoryUnreachable = "RepositoryUnreachable"
	// ReasonRepositoryTooLarge means that the remote sends more than the server reads or holds in memory.
	ReasonRepositoryTooLarge = "RepositoryTooLarge"
	// ReasonRepositoryNotFound means that the remote does not have the repository, or a reference names a missing GitRepoConfig.
	ReasonRepositoryNotFound = "RepositoryNotFound"
	// ReasonAuthenticationFailed means that the remote refuses the credentials.
	ReasonAuthenticationFailed = "AuthenticationFailed"
	// ReasonWriteDenied means that the remote allows reads of the repository but not writes.
	ReasonWriteDenied = "WriteDenied"
)

// Reasons of a GitDestination.
const (
	// ReasonRepositoryNotReady means that the GitRepoConfig is not ready; see its condition.
	ReasonRepositoryNotReady = "RepositoryNotReady"
	// ReasonBranchNotAllowed means that the GitRepoConfig does not allow the branch.
	ReasonBranchNotAllowed = "BranchNotAllowed"
	// ReasonFolderOverlaps means that the folder is inside, or contains, that of another destination.
	ReasonFolderOverlaps = "FolderOverlaps"
	// ReasonFolderInvalid means that a part of the folder's path is not a folder on the branch, or has a name that Git rejects or
	// reserves. Such a name is rejected when it is set; one that was stored before is not written.
	ReasonFolderInvalid = "FolderInvalid"
	// ReasonIgnoreInvalid means that the spec's ignore rules cannot be read.
	ReasonIgnoreInvalid = "IgnoreInvalid"
	// ReasonPushRejected means that the remote received changes and refused them.
	ReasonPushRejected = "PushRejected"
	// ReasonPushFailed means that changes could not be pushed to the remote and are being retried.
	ReasonPushFailed = "PushFailed"
	// ReasonProposalFailed means that changes are on the destination's branch, and no pull request could be opened or updated; it is
	// retried.
	ReasonProposalFailed = "ProposalFailed"
	// ReasonProposalRefused means that the Git host refuses to open or update the pull request until a user changes something.
	ReasonProposalRefused = "ProposalRefused"
	// ReasonHostInvalid means that the GitRepoConfig does not say which API its Git host has, or how to log in there.
	ReasonHostInvalid = "HostInvalid"
	// ReasonProposed means that the difference to the base is in an open pull request.
	ReasonProposed = "Proposed"
	// ReasonClosedWithoutMerge means that a pull request was closed without a merge.
	ReasonClosedWithoutMerge = "ClosedWithoutMerge"
	// ReasonNothingDeclined means that nothing is withheld because of a declined pull request.
	ReasonNothingDeclined = "NothingDeclined"
	// ReasonOpenTooLong means that the pull request is older than spec.delivery.pullRequest.maxOpenAge.
	ReasonOpenTooLong = "OpenTooLong"
	// ReasonInTime means that no pull request is older than allowed.
	ReasonInTime = "InTime"
	// ReasonLeaseHeldElsewhere means that another instance writes the branch.
	ReasonLeaseHeldElsewhere = "LeaseHeldElsewhere"
	// ReasonOwnedByAnother means that the marker in the folder names another owner.
	ReasonOwnedByAnother = "OwnedByAnother"
	// ReasonOwned means that the marker in the folder names this destination.
	ReasonOwned = "Owned"
	// ReasonUnclaimed means that the folder has no marker yet.
	ReasonUnclaimed = "Unclaimed"
	// ReasonRecipientsGiven means that Secrets are encrypted for the recipients in the spec.
	ReasonRecipientsGiven = "RecipientsGiven"
	// ReasonKeyGenerated means that Secrets are encrypted for a key pair that the server generated and stores.
	ReasonKeyGenerated = "KeyGenerated"
	// ReasonKeyUnavailable means that Secrets are encrypted with keys of the server that it can no longer find, or cannot
	// read.
	ReasonKeyUnavailable = "KeyUnavailable"
	// ReasonEncryptionUnavailable means that Secrets cannot be encrypted and are left out.
	ReasonEncryptionUnavailable = "EncryptionUnavailable"
	// ReasonSecretsAsIs means that the spec requires Secrets to be written in plain text.
	ReasonSecretsAsIs = "SecretsAsIs"
	// ReasonSecretsOmitted means that the spec omits Secrets.
	ReasonSecretsOmitted = "SecretsOmitted"
	// ReasonReported means that reports of the authors of changes arrive in time.
	ReasonReported = "Reported"
	// ReasonAuditSilent means that objects change and no audit event arrives.
	ReasonAuditSilent = "AuditSilent"
	// ReasonAuditLate means that audit events arrive later than changes wait for them.
	ReasonAuditLate = "AuditLate"
)

// Reasons of a WatchRule or ClusterWatchRule.
const (
	// ReasonDestinationNotFound means that the reference names no GitDestination.
	ReasonDestinationNotFound = "DestinationNotFound"
	// ReasonDestinationNotReady means that the GitDestination is rejected, suspended or cannot be written; see its condition.
	ReasonDestinationNotReady = "DestinationNotReady"
	// ReasonNoMatchingTypes means that the cluster has no type that the rule selects.
	ReasonNoMatchingTypes = "NoMatchingTypes"
	// ReasonTypeNotFound means that some of the types that the rule names do not exist; the others are watched.
	ReasonTypeNotFound = "TypeNotFound"
	// ReasonWatchFailed means that some of the types cannot be listed or watched; the others are.
	ReasonWatchFailed = "WatchFailed"
	// ReasonDiscoveryFailed means that not all of the cluster's types could be discovered.
	ReasonDiscoveryFailed = "DiscoveryFailed"
	// ReasonPermissionLost means that the user or account that last edited the object may no longer read what it selects.
	ReasonPermissionLost = "PermissionLost"
)

// Reasons of an AppCatalog.
const (
	// ReasonSourceNotFound means that the source namespace does not exist.
	ReasonSourceNotFound = "SourceNotFound"
	// ReasonSourceUnreachable means that the source cannot currently be listed or watched; it is retried.
	ReasonSourceUnreachable = "SourceUnreachable"
	// ReasonSourceIsServer means that the source is the namespace of this server.
	ReasonSourceIsServer = "SourceIsServer"
	// ReasonSourceIsTarget means that the source is the target of an environment.
	ReasonSourceIsTarget = "SourceIsTarget"
	// ReasonDeletedInSource means that workloads of the catalog have been deleted in the source; the message names them.
	ReasonDeletedInSource = "DeletedInSource"
	// ReasonNeverSeen means that workloads of the catalog have not been in the source yet; the message names them, or says that the
	// selector matches nothing.
	ReasonNeverSeen = "NeverSeen"
	// ReasonPatchFailed means that a patch cannot be applied to the source's content; the message names patch and workload.
	ReasonPatchFailed = "PatchFailed"
	// ReasonSelectorInvalid means that the spec's workloadSelector cannot be read.
	ReasonSelectorInvalid = "SelectorInvalid"
	// ReasonRecordRefused means that the API rejects a record, such as a workload with too long a name.
	ReasonRecordRefused = "RecordRefused"
	// ReasonRevisionNotKept means that the content of the revision that the spec pins is no longer stored.
	ReasonRevisionNotKept = "RevisionNotKept"
	// ReasonPauseUntil means that the spec's pauseUntil has not passed.
	ReasonPauseUntil = "PauseUntil"
	// ReasonPinned means that the spec pins a revision.
	ReasonPinned = "Pinned"
	// ReasonPreviewOnly means that the spec only records changes.
	ReasonPreviewOnly = "PreviewOnly"
	// ReasonNotPaused means that the spec neither pauses nor pins the catalog.
	ReasonNotPaused = "NotPaused"
	// ReasonNothingMissing means that the source has the workloads of the catalog, or that the target has the objects that are not copied.
	ReasonNothingMissing = "NothingMissing"
	// ReasonSourceFollowed means that the source is read and watched.
	ReasonSourceFollowed = "SourceFollowed"
)

// Reasons of an Environment. Pinned, Suspended and PermissionLost are used, too.
const (
	// ReasonCatalogNotFound means that the reference names no AppCatalog.
	ReasonCatalogNotFound = "CatalogNotFound"
	// ReasonCatalogNotReady means that the AppCatalog is not ready; see its condition.
	ReasonCatalogNotReady = "CatalogNotReady"
	// ReasonCatalogReplaced means that the AppCatalog was deleted and created again, perhaps with another source.
	ReasonCatalogReplaced = "CatalogReplaced"
	// ReasonBaseNotFound means that the reference names no Environment that a Branch can have as base.
	ReasonBaseNotFound = "BaseNotFound"
	// ReasonTargetNotFound means that the target namespace does not exist, and is not to be created.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonTargetIsSource means that the target namespace is the source of a catalog.
	ReasonTargetIsSource = "TargetIsSource"
	// ReasonTargetTaken means that the target namespace is that of another environment, or of this server.
	ReasonTargetTaken = "TargetTaken"
	// ReasonUpToDate means that the environment holds what the catalog offers, or that copies match the source.
	ReasonUpToDate = "UpToDate"
	// ReasonNotSyncing means that no sync is in progress.
	ReasonNotSyncing = "NotSyncing"
	// ReasonNoConflicts means that no field was changed in the environment and in the catalog.
	ReasonNoConflicts = "NoConflicts"
	// ReasonNotHeld means that no automatic sync waits that would otherwise begin.
	ReasonNotHeld = "NotHeld"
	// ReasonNotCopied means that the target lacks objects that workloads use and the server does not copy.
	ReasonNotCopied = "NotCopied"
	// ReasonUnreadable means that the server may not list a kind that it needs to check.
	ReasonUnreadable = "Unreadable"
	// ReasonNeverSynced means that no sync of everything has completed yet.
	ReasonNeverSynced = "NeverSynced"
	// ReasonWorkloadsChanged means that the catalog offers workloads that differ from the environment's.
	ReasonWorkloadsChanged = "WorkloadsChanged"
	// ReasonDependenciesChanged means that objects that workloads refer to have changed in the source.
	ReasonDependenciesChanged = "DependenciesChanged"
	// ReasonDependenciesMissing means that the source lacks objects that workloads refer to; the message names them.
	ReasonDependenciesMissing = "DependenciesMissing"
	// ReasonDismissed means that a user has dismissed the offered changes.
	ReasonDismissed = "Dismissed"
	// ReasonSyncFailed means that the last sync failed; the message has the error.
	ReasonSyncFailed = "SyncFailed"
	// ReasonWorkloadsNotReady means that workloads were applied and are not ready.
	ReasonWorkloadsNotReady = "WorkloadsNotReady"
	// ReasonFieldsChangedTwice means that fields were changed in the environment and in the catalog.
	ReasonFieldsChangedTwice = "FieldsChangedTwice"
	// ReasonWindowClosed means that the spec's windows do not currently allow automatic syncs to begin, or messages to be sent.
	ReasonWindowClosed = "WindowClosed"
	// ReasonRateLimited means that syncs are queued because of the SyncPolicy's maxSyncsPerMinute.
	ReasonRateLimited = "RateLimited"
	// ReasonExpired means that the spec's ttl is over and the environment is being deleted.
	ReasonExpired = "Expired"
)

// Reasons of the failure of a run of an environment's sync as a whole. CatalogNotFound, CatalogReplaced, RevisionNotKept and
// SyncFailed are used, too.
const (
	// ReasonInterrupted means that the server stopped during each attempt.
	ReasonInterrupted = "Interrupted"
	// ReasonContended means that other clients keep writing the objects that the run writes.
	ReasonContended = "Contended"
	// ReasonForbidden means that the server may not read or write the objects of the run.
	ReasonForbidden = "Forbidden"
	// ReasonUnreachable means that the API server does not respond or is unavailable.
	ReasonUnreachable = "Unreachable"
)

// Reasons of the failure of an object in a run of an environment's sync.
const (
	// ReasonSourceMissing means that the source does not have the object.
	ReasonSourceMissing = "SourceMissing"
	// ReasonRefused means that the API server refuses the object.
	ReasonRefused = "Refused"
	// ReasonNotOurs means that an object of the same name exists that the environment has not written.
	ReasonNotOurs = "NotOurs"
	// ReasonBeingDeleted means that an object of the same name exists that is being deleted.
	ReasonBeingDeleted = "BeingDeleted"
)

// Reasons of a SyncPolicy.
const (
	// ReasonArchiveUnavailable means that records cannot be archived, so that expired ones are kept.
	ReasonArchiveUnavailable = "ArchiveUnavailable"
)

// Reasons of a SyncPipeline. Suspended, PermissionLost, NoMatchingTypes, TypeNotFound, WatchFailed and DiscoveryFailed are used, too.
const (
	// ReasonPipelinesSuspended means that the SyncPolicy stops all pipelines.
	ReasonPipelinesSuspended = "PipelinesSuspended"
	// ReasonDelivering means that every sink accepts what it is sent.
	ReasonDelivering = "Delivering"
	// ReasonNothingSent means that nothing has been sent to a sink yet; the message names it.
	ReasonNothingSent = "NothingSent"
	// ReasonDeliveryRetrying means that a delivery to a sink failed and is retried; the message names the sink and the error.
	ReasonDeliveryRetrying = "DeliveryRetrying"
	// ReasonDeliveryFailed means that several consecutive deliveries to a sink failed and are retried.
	ReasonDeliveryFailed = "DeliveryFailed"
	// ReasonDeliveryRejected means that a sink rejects what it is sent; the message names the sink and the error.
	ReasonDeliveryRejected = "DeliveryRejected"
	// ReasonDeliveryGivenUp means that a sink has reached its maxAttempts and is paused.
	ReasonDeliveryGivenUp = "DeliveryGivenUp"
)

// Reasons of a NotificationSink. Suspended, PermissionLost, SecretNotFound, SecretInvalid, Delivering, NothingSent, DeliveryRetrying,
// DeliveryFailed and DeliveryRejected are used, too.
const (
	// ReasonNotificationsSuspended means that the SyncPolicy stops all notifications.
	ReasonNotificationsSuspended = "NotificationsSuspended"
	// ReasonSpecInvalid means that the spec cannot be used; the message says why.
	ReasonSpecInvalid = "SpecInvalid"
)
