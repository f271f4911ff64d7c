// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Limits of what the server writes into objects. Validation rejects more; controllers write no more, and count the rest where
// the kind has a count. They keep every object below 1.5 MiB, the most that etcd accepts in one request.
const (
	// MaxWorkloads is the number of workloads that an AppCatalog holds. Its status lists all of them, with names of up to
	// 253 bytes, and up to 100 revisions.
	MaxWorkloads = 1000
	// MaxManifestBytes is the size, in bytes of JSON, up to which a CatalogWorkload holds a manifest: 512 KiB, because it
	// holds up to two, as captured and as rendered.
	MaxManifestBytes = 512 << 10

	// MaxFailures is the number of failed objects that a SyncStatus lists, and the number of warnings.
	MaxFailures = 100
	// MaxFailureBytes is the length, in bytes, of the message about one failed object. A message for each of MaxFailures
	// objects takes 50 KiB.
	MaxFailureBytes = 512

	// MaxConflicts is the number of workloads with conflicts that an Environment lists, and the number of fields of each.
	MaxConflicts = 100
	// MaxActiveSyncs is the number of records that status.activeSyncs of an Environment lists: a running and a pending sync
	// of workloads, and a sync of all dependencies and one of some. There may be more for a short time, which are listed
	// when these have ended.
	MaxActiveSyncs = 4
	// MaxNotCopied is the number of objects not copied that an Environment lists, and the number of ServiceAccounts of each.
	MaxNotCopied = 100

	// MaxKeys is the number of keys of a ConfigMap or Secret that an EnvironmentDependency lists.
	MaxKeys = 1000
	// MaxReferrers is the number of objects referring to a dependency that an EnvironmentDependency lists.
	MaxReferrers = 1000

	// MaxPendingEdits is the number of edits of one AppCatalog or Environment that may wait for the controller. Consecutive
	// edits by one user count as one.
	MaxPendingEdits = 16
	// MaxPendingSyncs is the number of sync requests that may wait for one GitDestination, AppCatalog or Environment.
	MaxPendingSyncs = 16
	// MaxPendingPipelineRequests is the number of requests that may wait for one SyncPipeline.
	MaxPendingPipelineRequests = 10
)

// Limits of what users write into specs. They bound the memory and the work that one object causes, in validation, in the
// check of the caller's permissions, and in every plan of the controllers.
const (
	// MaxRules is the number of rules of a WatchRule or a ClusterWatchRule.
	MaxRules = 100
	// MaxRuleEntries is the number of entries of each list of a rule.
	MaxRuleEntries = 500
	// MaxRuleEntriesInAll is the number of entries in all lists of all rules of one object.
	MaxRuleEntriesInAll = 1000
	// MaxRuleTypes is the number of types that the rules of one object name: in each rule, every API group with every
	// resource. The permissions of the author are checked for each of them.
	MaxRuleTypes = 1000
	// MaxSourceNames is the number of entries of each list of a source of a SyncPipeline.
	MaxSourceNames = 1000
	// MaxAllowedBranches is the number of names and globs in spec.allowedBranches of a GitRepoConfig.
	MaxAllowedBranches = 500
	// MaxSelectorEntries is the number of labels, expressions and values of expressions of a label selector.
	MaxSelectorEntries = 500
)
