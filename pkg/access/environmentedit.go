// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// EnvironmentWritesNoMore reports whether a change of an environment causes no further writes, whoever starts the syncs. Then its author
// needs no permissions for what syncs do.
//
// It ignores automatic syncs that are disabled or become a shadow, an environment that is no longer pinned, the sync windows, the TTL, the
// history limit, and that written objects are orphaned. Everything else counts, also what removes objects: a sync deletes them.
func EnvironmentWritesNoMore(spec, before *v1alpha1.EnvironmentSpec) bool {
	was := before.DeepCopy()
	was.SyncWindows, was.TTL, was.HistoryLimit = spec.SyncWindows, spec.TTL, spec.HistoryLimit
	if !spec.AutoSync {
		was.AutoSync = false
	}
	if spec.Shadow {
		was.Shadow = true
	}
	if spec.PinnedRevision == nil {
		was.PinnedRevision = nil
	}
	if spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan {
		was.DeletionPolicy = spec.DeletionPolicy
	}
	return equality.Semantic.DeepEqual(spec, was)
}

// AutomaticSyncsDoNoMore reports whether automatic syncs, which were enabled before, do nothing after a change that they did not do
// before. Then they keep the permissions of the user who enabled them.
//
// It ignores the sync windows, the pinned revision, the history limit, the TTL and the deletion policy, none of which is content of a
// sync. It also ignores that less is written: a shadow, no namespace, and workloads or objects that are removed from branchWorkloads or
// include.
func AutomaticSyncsDoNoMore(spec, before *v1alpha1.EnvironmentSpec) bool {
	was := before.DeepCopy()
	was.SyncWindows, was.PinnedRevision, was.HistoryLimit = spec.SyncWindows, spec.PinnedRevision, spec.HistoryLimit
	was.TTL, was.DeletionPolicy = spec.TTL, spec.DeletionPolicy
	if spec.Shadow {
		was.Shadow = true
	}
	if !spec.CreateNamespace {
		was.CreateNamespace = false
	}
	was.BranchWorkloads = slices.DeleteFunc(was.BranchWorkloads, func(workload v1alpha1.WorkloadReference) bool {
		return !slices.Contains(spec.BranchWorkloads, workload)
	})
	was.Include = slices.DeleteFunc(was.Include, func(object v1alpha1.IncludedObject) bool {
		return !slices.Contains(spec.Include, object)
	})
	return equality.Semantic.DeepEqual(spec, was)
}
