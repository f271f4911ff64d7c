// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

// Input is everything that a plan depends on. All objects of a kind have the same version. Planning modifies only CopyCache.
type Input struct {
	Environment *v1alpha1.Environment
	// Related lists the other environments with the same target: the base of a Branch, and the Branches of a base.
	Related []*v1alpha1.Environment

	// Revision is the catalog's revision. Workloads are all workloads it offers: whole manifests, with the catalog's
	// patches applied.
	Revision  int64
	Workloads []*unstructured.Unstructured
	// Previous holds the patched workloads of a Branch as the catalog offered them at the Branch's current revision, as far
	// as known.
	Previous []*unstructured.Unstructured
	// SourceNamespace is the catalog's source. Source holds its ConfigMaps, Secrets, Services, ServiceAccounts,
	// HorizontalPodAutoscalers, PodDisruptionBudgets, Ingresses, NetworkPolicies and objects of GatewayAPIKinds. Objects
	// that Planner.Needs does not return can be omitted; any other object that is not in Source does not exist. Source also
	// holds the RoleBindings of the source and the ClusterRoleBindings whose subjects are ServiceAccounts of the source or
	// the target.
	SourceNamespace string
	Source          []*unstructured.Unstructured
	// Unreadable holds the kinds of RBAC that could not be listed.
	Unreadable sets.Set[schema.GroupKind]
	// Denied holds the types that must not be copied now. Source has no objects of them. Their copies stay as they are, and
	// objects of them that the environment needs are failures.
	Denied Denied
	// DeniedObjects is the same for single custom resources.
	DeniedObjects map[Key]Denial
	// SecretsByConsent is set if Secrets are copied by the consent of the catalog's editor alone, and the requester may be unable to read
	// them. Then only those are copied to which the catalog's workloads refer without the environment's patches.
	SecretsByConsent bool
	// Consented holds the workloads whose Secrets the consent covers, like Workloads. If it is nil, these are Workloads.
	Consented []*unstructured.Unstructured
	// Unshared is the reason why the requester's own permissions do not have other Secrets copied, if SecretsByConsent is set. The zero
	// value means that there is no requester.
	Unshared Denial
	// Snapshot holds all objects that were applied with Revision, if that is known. They are then the desired objects, and
	// nothing is taken from the catalog or the source. If it is nil, the catalog's workloads are desired.
	Snapshot []*unstructured.Unstructured
	// Live holds objects of the target with their managedFields: all that the environment has written, all with the name of
	// an object it may write, the PersistentVolumeClaims, the RoleBindings, and the Roles (names only).
	Live []*unstructured.Unstructured
	// Base holds the last Step.Desired of each object. An object without a base is compared by its managedFields.
	Base map[Key]*unstructured.Unstructured
	// Marks are labels and annotations of other tools to remove from copies, in addition to those of the Planner.
	Marks objectcopy.Marks
	// Index is the environment's index before the sync.
	Index []v1alpha1.EnvironmentDependencyRecord

	Action v1alpha1.SyncAction
	// Only restricts the sync to these workloads and what they reference. Empty means all.
	Only []v1alpha1.WorkloadReference
	// Force takes over objects that the environment has not written.
	Force bool
	// Resolution resolves conflicts in a Branch.
	Resolution v1alpha1.ConflictResolutionSpec
	// Now is the time recorded as discovery time of dependencies.
	Now metav1.Time
	// CopyCache has the copies that earlier calls with the same Environment, Revision and Marks have made. If it is nil, each call makes all
	// copies.
	CopyCache *CopyCache
}

// isSelected reports whether the sync includes a workload.
func (s *Input) isSelected(key Key) bool {
	return len(s.Only) == 0 || slices.Contains(s.Only, key.workload())
}

// isMember reports whether a workload of the catalog belongs to the environment. A Branch has only its branchWorkloads.
func (s *Input) isMember(key Key) bool {
	return !s.isBranch() || slices.Contains(s.Environment.Spec.BranchWorkloads, key.workload())
}

// isIndexed reports whether the index has a record of an object.
func (s *Input) isIndexed(key Key) bool {
	return slices.ContainsFunc(s.Index, func(r v1alpha1.EnvironmentDependencyRecord) bool { return recordKey(&r) == key })
}

// actionOf returns the action that a step belongs to. Objects of the index belong to the action Cluster.
func (s *Input) actionOf(key Key) v1alpha1.SyncAction {
	switch {
	case s.Action == v1alpha1.SyncActionCluster:
		return v1alpha1.SyncActionCluster
	case s.Action == v1alpha1.SyncActionCatalog || !s.isIndexed(key):
		return v1alpha1.SyncActionCatalog
	}
	return v1alpha1.SyncActionCluster
}

// isShared reports whether an applied object may also concern workloads outside of the sync. Such an object is left as it
// is.
func (s *Input) isShared(object *unstructured.Unstructured) bool {
	return len(s.Only) > 0 && s.Base[KeyOf(object)] != nil
}
