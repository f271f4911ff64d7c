// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

// Situation is everything that a plan depends on. Objects of one kind are all of one version. Nothing of it is changed.
type Situation struct {
	Environment *v1alpha1.Environment
	// Family are the other environments that live in the same target: the base of a Branch and the Branches of a base.
	Family []*v1alpha1.Environment

	// Revision is that of the catalog, and Workloads are all that it offers: whole manifests, with the catalog's patches.
	Revision  int64
	Workloads []*unstructured.Unstructured
	// Before are the workloads of a Branch with patches as the catalog offered them with the revision that it has, as far as that
	// is known.
	Before []*unstructured.Unstructured
	// SourceNamespace is the catalog's, and Source are its ConfigMaps, Secrets, Services, ServiceAccounts,
	// HorizontalPodAutoscalers, PodDisruptionBudgets, Ingresses, NetworkPolicies, and of the Gateway API GatewayAPIKinds. Those that nobody
	// needs (Planner.Needs) may be left out. What is not among them does not exist.
	// Besides, it has the RoleBindings of the source, and the ClusterRoleBindings, that are about ServiceAccounts of the source or the
	// target.
	SourceNamespace string
	Source          []*unstructured.Unstructured
	// Unreadable are kinds of RBAC that could not be listed.
	Unreadable sets.Set[schema.GroupKind]
	// Withheld are types of which Source has nothing because they may not be copied now. What the environment has of them stays as it
	// is, and what it needs of them is said to be withheld.
	Withheld Withheld
	// WithheldObjects are custom resources of which the same is true one by one.
	WithheldObjects map[Key]Withholding
	// Applied are all objects that were applied when the environment had the revision, if that is known: then they are wanted as
	// they were, and nothing is taken from the catalog or the source. If it is nil, what the catalog offers is wanted.
	Applied []*unstructured.Unstructured
	// Live are objects of the target, with their managedFields: all that the environment has written, whatever has the name of
	// what it may write, the PersistentVolumeClaims, the RoleBindings, and the Roles, of which only the names are there.
	Live []*unstructured.Unstructured
	// Base are what was wanted last, as Step.Desired had it. What has none is compared by its managedFields.
	Base map[Key]*unstructured.Unstructured
	// Marks are further labels and annotations of other tools that copies do not have now, beside those of the Planner.
	Marks objectcopy.Marks
	// Index is what the environment's EnvironmentDependencies record.
	Index []v1alpha1.EnvironmentDependencyRecord

	Action v1alpha1.SyncAction
	// Only are the workloads to sync, with what they refer to. Empty means all.
	Only []v1alpha1.WorkloadReference
	// Force takes over objects that the environment has not written.
	Force bool
	// Resolution decides about conflicts in a Branch.
	Resolution v1alpha1.ConflictResolutionSpec
	// Now is when dependencies are discovered.
	Now metav1.Time
}

// Withheld are types of objects that are not copied from the source, with why.
type Withheld map[v1alpha1.DependencyType]Withholding

// Withholding is why objects of a type are not copied.
type Withholding struct {
	// Reason is one of the reasons of failures.
	Reason string
	// Message says in a clause who lost which right, and what restores it.
	Message string
}

// Has says whether objects of a kind are not copied.
func (w Withheld) Has(kind schema.GroupKind) bool {
	_, ok := w[v1alpha1.DependencyType(kind.Kind)]
	return ok && kind.Group == ""
}

// Reason is that of conditions: a right that is lost is worse than one that is not known.
func (w Withheld) Reason() string {
	for _, why := range w {
		if why.Reason == v1alpha1.ReasonPermissionLost {
			return why.Reason
		}
	}
	return v1alpha1.ReasonUnreachable
}

// Sentence says what of a source is not copied, and why.
func (w Withheld) Sentence(source string) string {
	var sentences []string
	for _, of := range w.types() {
		sentences = append(sentences, fmt.Sprintf("%ss of %s are not copied: %s", of, source, w[of].Message))
	}
	return strings.Join(sentences, "; ")
}

// String names the types, and nothing of why.
func (w Withheld) String() string { return fmt.Sprint(w.types()) }

func (w Withheld) types() []v1alpha1.DependencyType { return slices.Sorted(maps.Keys(w)) }

// Key tells the objects of a namespace apart.
type Key struct {
	schema.GroupKind
	Name string
}

// KeyOf returns the key of an object.
func KeyOf(object *unstructured.Unstructured) Key {
	return Key{object.GroupVersionKind().GroupKind(), object.GetName()}
}

// String is how people call the object.
func (k Key) String() string { return k.Kind + " " + k.Name }

func byKey(objects []*unstructured.Unstructured) map[Key]*unstructured.Unstructured {
	found := make(map[Key]*unstructured.Unstructured, len(objects))
	for _, object := range objects {
		found[KeyOf(object)] = object
	}
	return found
}
