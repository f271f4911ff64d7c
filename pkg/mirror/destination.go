// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

var secretsResource = schema.GroupResource{Resource: "secrets"}

// destination is the state of one GitDestination while it exists: its plan, its pending changes and comparisons, and its
// record.
type destination struct {
	key types.NamespacedName
	uid types.UID

	// plan is the current plan. The controller replaces it.
	plan atomic.Pointer[destinationPlan]
	// claim is the current claim to the folder. The controller replaces it, holding the registry's mu.
	claim atomic.Pointer[v1alpha1.FolderClaim]
	// tree is the latest view of the branch; nil until the branch has been read. The branch's worker replaces it.
	tree atomic.Pointer[gitrepo.Tree]
	// hadRules is set once a rule has referred to the destination.
	hadRules atomic.Bool
	// plainSecrets is set if files may have unencrypted Secrets although the plan encrypts them now.
	plainSecrets atomic.Bool

	// withheld are files of a declined pull request, proposal what is shown of the newest one; nil before the worker has read it.
	withheld withheld
	proposal atomic.Pointer[proposalState]

	queue    *outbox.Queue
	overflow overflow
	seeds    *seeds
	record   *record
	// deposits are files of other parts of the server.
	deposits depositQueue
}

func newDestination(object *v1alpha1.GitDestination) *destination {
	d := &destination{key: nameOf(object), uid: object.UID, queue: outbox.NewQueue(), seeds: newSeeds(), record: &record{}}
	encrypted := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionSecretsEncrypted)
	d.plainSecrets.Store(encrypted != nil && encrypted.Reason == v1alpha1.ReasonSecretsAsIs)
	return d
}

// known returns the blob of an object's path after all pending changes are pushed. The object is in the form in which it is written, with a
// zero hash if it is not. sure is false if the blob is unknown: the branch has not been read, or a comparison may be about to change it.
func (d *destination) known(p *destinationPlan, object rendered) (hash gitrepo.Hash, exists, sure bool) {
	// This comes first: a comparison that has ended has published its result in the tree.
	if d.seeds.comparing(object.resource()) {
		return hash, false, false
	}
	if hash, ok := d.pending(object.object, object.path); ok {
		return hash, !hash.IsZero(), true
	}
	tree := d.tree.Load()
	if tree == nil {
		return hash, false, false
	}
	if d.withheld.holds(p.file(object.path), object.hash) {
		return object.hash, !object.hash.IsZero(), true
	}
	hash, exists = tree.Lookup(p.file(object.path))
	return hash, exists, true
}

// pending returns the blob that the pending changes of a path lead to, zero for no file. It reports whether there are any.
func (d *destination) pending(object outbox.Object, path string) (gitrepo.Hash, bool) {
	change, ok := d.queue.Pending(path)
	return change.Hash, ok && !d.seeds.superseded(object, change.ResourceVersion, change.Hash.IsZero())
}

// hasFile reports whether a path has a file after all pending changes are pushed, whatever a running comparison is about to change.
func (d *destination) hasFile(p *destinationPlan, object outbox.Object, path string) bool {
	if hash, ok := d.pending(object, path); ok {
		return !hash.IsZero()
	}
	tree := d.tree.Load()
	if tree == nil {
		return false
	}
	_, exists := tree.Lookup(p.file(path))
	return exists
}

// superseded reports whether a row is obsolete, as seeds.superseded. A part of a comparison has not removed the file of a deleted object,
// so it does not supersede the deletion, unless a later change is pending: the comparison may have listed the object again.
func (d *destination) superseded(row outbox.Row) bool {
	last, ok := d.queue.Pending(row.Change.Path)
	removed := ok && last.Sequence == row.Sequence && last.Hash.IsZero()
	return d.seeds.superseded(row.Change.Object, row.Change.ResourceVersion, removed)
}

// compareInstead replaces a row that the outbox cannot hold by a comparison.
func (d *destination) compareInstead(row outbox.Row) {
	d.queue.Withdrawn(row.Change.Path, row.Sequence)
	d.seeds.invalidateNamespace(row.Change.Object.GroupVersionResource(), row.Change.Object.Namespace)
}

// file returns the path in the repository of a path below the base folder.
func (p *destinationPlan) file(below string) string {
	return manifest.Join(p.object.Spec.BaseFolder, below)
}

// below returns the path below the base folder of a path in the repository.
func (p *destinationPlan) below(file string) string {
	return strings.TrimPrefix(strings.TrimPrefix(file, p.object.Spec.BaseFolder), "/")
}

// operations returns the operations that the rules allow for the file of an object; none if it is not mirrored here.
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

// takes reports whether the destination mirrors a type: Secrets only if they can be encrypted or spec.secrets is AsIs.
func (p *destinationPlan) takes(t schema.GroupVersionResource) bool {
	return t.GroupResource() != secretsResource || p.object.Spec.Secrets == v1alpha1.SecretsAsIs || p.secrets.encrypter != nil
}

// types returns the types that the destination mirrors, in a stable order.
func (p *destinationPlan) types() []watch.Type {
	return slices.DeleteFunc(p.selection.types(), func(t watch.Type) bool { return !p.takes(t.Resource) })
}

// prunes reports whether orphans are removed.
func (p *destinationPlan) prunes() bool { return p.object.Spec.Prune != v1alpha1.PruneNever }

// active reports whether the destination is in force and not suspended.
func (p *destinationPlan) active() bool {
	return p != nil && p.problem.IsZero() && !p.object.Spec.Suspend
}

// replace sets the plan of a destination and requests what follows from the difference to the previous one.
func (d *destination) replace(p *destinationPlan) {
	before := d.plan.Swap(p)
	if before != nil && (before.branch != p.branch || before.object.Spec.BaseFolder != p.object.Spec.BaseFolder) {
		d.tree.Store(nil) // The worker reads the new branch or folder and compares everything with it.
		d.seeds.invalidateAll()
		d.withheld.set(nil) // What the new branch or folder withholds is read by its worker.
		d.proposal.Store(nil)
	}
	if before != nil && before.prunes() != p.prunes() {
		d.seeds.sweepAgain()
	}
	if p.referred {
		d.hadRules.Store(true)
	}
	switch {
	case p.secrets.encrypter != nil:
		d.plainSecrets.Store(false) // The comparison that the new plan requests encrypts them.
	case before != nil && before.object.Spec.Secrets == v1alpha1.SecretsAsIs:
		d.plainSecrets.Store(true)
	}
}

// requestComparisons requests the comparisons that a plan makes necessary.
func (d *destination) requestComparisons(p *destinationPlan) {
	fingerprints := map[schema.GroupVersionResource]string{}
	// Marshalling a spec does not fail.
	ignored, _ := json.Marshal(p.object.Spec.Ignore)
	for _, t := range p.types() {
		fingerprints[t.Resource] = fmt.Sprintf("%s\n%s\n%s\n%s\n%s",
			p.object.Spec.Secrets, p.encryptionOf(t.Resource), p.object.Spec.Prune, ignored, p.selection.fingerprint(t.Resource))
	}
	d.seeds.selectTypes(fingerprints)
	d.seeds.request(p.object.Status.PendingSyncs)
}
