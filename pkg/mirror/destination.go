// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

var secretsResource = schema.GroupResource{Resource: "secrets"}

// destination is one GitDestination while it exists: what is to be done for it, what waits
// for it, what has been done.
type destination struct {
	key types.NamespacedName
	uid types.UID

	// plan is what the objects in the cluster say now. The controller replaces it.
	plan atomic.Pointer[destinationPlan]
	// tree is the newest view of the branch, pushed or about to be; nil until the branch
	// has been read. The branch's worker replaces it.
	tree atomic.Pointer[gitrepo.Tree]
	// hadRules says that rules have referred to the destination.
	hadRules atomic.Bool
	// plainSecrets says that files of Secrets may hold them as they are, although they are
	// to be encrypted now.
	plainSecrets atomic.Bool

	queue  *queue
	seeds  *seeds
	record *record
	// deposits are files that no rule has selected.
	deposits depositQueue
}

func newDestination(object *v1alpha1.GitDestination) *destination {
	d := &destination{key: nameOf(object), uid: object.UID, queue: newQueue(), seeds: newSeeds(), record: &record{}}
	told := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionSecretsEncrypted)
	d.plainSecrets.Store(told != nil && told.Reason == v1alpha1.ReasonSecretsAsIs)
	return d
}

// known returns the blob that an object's path has, or will have when everything on its
// way has been pushed. sure is false while that cannot be told: the branch has not been
// read, or is being compared with the cluster, so that it may be about to change.
func (d *destination) known(p *destinationPlan, object rendered) (hash gitrepo.Hash, exists, sure bool) {
	// This comes first: a comparison that is over by now has shown its result in the tree.
	if d.seeds.comparing(object.resource()) {
		return hash, false, false
	}
	if change, ok := d.queue.pending(object.path); ok && !d.seeds.superseded(object.object, change.resourceVersion) {
		return change.hash, !change.hash.IsZero(), true
	}
	tree := d.tree.Load()
	if tree == nil {
		return hash, false, false
	}
	hash, exists = tree.Lookup(p.file(object.path))
	return hash, exists, true
}

// compareInstead lets a comparison do what a row cannot.
func (d *destination) compareInstead(row Row) {
	d.queue.withdrawn(row.Change.Path, row.Sequence)
	d.seeds.invalidateNamespace(row.Change.Object.resource(), row.Change.Object.Namespace)
}

// file is the place in the repository of a path below the base folder.
func (p *destinationPlan) file(below string) string {
	return manifest.Join(p.object.Spec.BaseFolder, below)
}

// operations returns what may happen to the file of an object; none: the object is not
// mirrored here.
func (p *destinationPlan) operations(t schema.GroupVersionResource, object *unstructured.Unstructured, of namespaceLookup) operations {
	if !p.takes(t) || leftOut(object, of) {
		return 0
	}
	if _, made := manifest.ClusterGenerated(t.GroupResource(), object); made && object.GetAnnotations()[v1alpha1.AnnotationMirror] != "true" {
		return 0
	}
	return p.selection.operations(t, object.GetNamespace(), labels.Set(object.GetLabels()), of)
}

func leftOut(object *unstructured.Unstructured, of namespaceLookup) bool {
	if object.GetAnnotations()[v1alpha1.AnnotationMirror] == "false" {
		return true
	}
	if object.GetNamespace() == "" {
		return false
	}
	namespace, ok := of(object.GetNamespace())
	return ok && annotated(&namespace)
}

// takes says whether the destination writes objects of a type at all: Secrets only
// encrypted, unless it was asked to write them as they are.
func (p *destinationPlan) takes(t schema.GroupVersionResource) bool {
	return t.GroupResource() != secretsResource || p.object.Spec.Secrets == v1alpha1.SecretsAsIs || p.secrets.sealer != nil
}

// types returns the types whose objects the destination writes, in a stable order.
func (p *destinationPlan) types() []watch.Type {
	return slices.DeleteFunc(p.selection.types(), func(t watch.Type) bool { return !p.takes(t.Resource) })
}

// prunes says whether files that no object maps to are removed.
func (p *destinationPlan) prunes() bool { return p.object.Spec.Prune != v1alpha1.PruneNever }

// active says whether the destination is written now.
func (p *destinationPlan) active() bool {
	return p != nil && p.verdict.ok() && !p.object.Spec.Suspend
}
