// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/catalog/commits"
	"github.com/configbutler/slipstream/pkg/kube/patch"
)

// planInput is everything that a plan is computed from.
type planInput struct {
	catalog *v1alpha1.AppCatalog
	rules   capture.Rules
	// held are the CatalogWorkloads of the catalog.
	held   map[reference]*v1alpha1.CatalogWorkload
	source sourceState
	now    time.Time
	// sourceOnly is true if the current spec is not applied. Then only source changes of workloads that the catalog holds are applied.
	sourceOnly bool
	// editPending is true if an edit of the spec is applied after this plan.
	editPending bool
	// resumed is true if an earlier attempt has written the SyncStatus. It may also have written CatalogWorkloads, which are then
	// ahead of the status.
	resumed bool
	// preview is true if nothing is applied.
	preview bool
	// taken is what the catalog last took from its source if it offers a rollback, which the plan ends; nil otherwise.
	taken map[reference]*v1alpha1.CatalogWorkloadRecord
}

// plan is the next state of a catalog.
type plan struct {
	// entries are the workloads that the catalog offers, sorted by kind and name.
	entries []v1alpha1.CatalogEntry
	// changes are the differences from the current entries. Those of a preview are the differences from the last observed source state.
	changes []v1alpha1.ResourceSummary
	// writes are the CatalogWorkloads that are new or have changed.
	writes []*v1alpha1.CatalogWorkload
	// hashes are those of the source content of the workloads that exist.
	hashes map[reference]string
	// preview is true if nothing is applied.
	preview bool
	// isRollback is true if the workloads are those of an earlier revision.
	isRollback bool
	// endsRollback is true if the workloads are those of the source again.
	endsRollback bool
	// spans are the source versions between which the changes were made.
	spans []commits.Span
}

// step is the next state of one workload.
type step struct {
	// entry is nil if the catalog does not offer the workload.
	entry *v1alpha1.CatalogEntry
	// workload is its CatalogWorkload. It is nil if that does not change, or is deleted.
	workload *v1alpha1.CatalogWorkload
	// change is empty if there is nothing to record.
	change v1alpha1.ChangeType
	// hash is that of the source content, empty if the workload was not read.
	hash string
}

// newPlan computes the next state of a catalog. It is a pure function. It returns a *stallingError if a patch does not apply or too many
// workloads are selected. Then it plans none of the workloads, because a revision is applied as a whole.
func newPlan(in planInput) (plan, error) {
	out := plan{hashes: map[reference]string{}, preview: in.preview, endsRollback: in.taken != nil}
	offered := in.offered()
	for _, workload := range in.workloads(offered) {
		next, err := in.step(workload, offered[workload])
		if err != nil {
			return plan{}, err
		}
		out.add(&in, workload, next)
	}
	if n := len(out.entries); n > v1alpha1.MaxWorkloads {
		return plan{}, &stallingError{v1alpha1.ReasonRecordRefused, fmt.Errorf(
			"%d workloads are selected, and a catalog holds %d at most; select fewer in spec.workloadSelector", n, v1alpha1.MaxWorkloads)}
	}
	return out, nil
}

// add adds the step of a workload to the plan.
func (p *plan) add(in *planInput, workload reference, next step) {
	if next.entry != nil {
		p.entries = append(p.entries, *next.entry)
	}
	if next.workload != nil && differs(in.held[workload], next.workload) {
		p.writes = append(p.writes, next.workload)
	}
	if next.change != "" {
		p.changes = append(p.changes, v1alpha1.ResourceSummary{
			Type: string(workload.Kind), Namespace: in.catalog.Spec.SourceNamespace, Name: workload.Name, ChangeType: next.change,
		})
		if span, ok := in.span(workload, next); ok {
			p.spans = append(p.spans, span)
		}
	}
	if next.hash != "" {
		p.hashes[workload] = next.hash
	}
}

// offered returns the current entries of the catalog.
func (in *planInput) offered() map[reference]*v1alpha1.CatalogEntry {
	out := map[reference]*v1alpha1.CatalogEntry{}
	for i := range in.catalog.Status.Workloads {
		entry := &in.catalog.Status.Workloads[i]
		out[reference{Kind: entry.Kind, Name: entry.Name}] = entry
	}
	return out
}

// workloads returns all workloads that are offered, held, observed or were last taken, sorted.
func (in *planInput) workloads(offered map[reference]*v1alpha1.CatalogEntry) []reference {
	var out []reference
	for workload := range offered {
		out = append(out, workload)
	}
	for workload := range in.held {
		out = append(out, workload)
	}
	for workload := range in.source.objects {
		out = append(out, workload)
	}
	for workload := range in.taken {
		out = append(out, workload)
	}
	slices.SortFunc(out, compareReferences)
	return slices.Compact(out)
}

func compareReferences(a, b reference) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// step computes the next state of a workload. entry is its current entry, nil if there is none.
func (in *planInput) step(workload reference, entry *v1alpha1.CatalogEntry) (step, error) {
	if !in.source.covers(workload) {
		return in.unread(workload, entry), nil
	}
	object := in.source.objects[workload]
	switch {
	case object == nil:
		return in.absent(workload, entry), nil
	case in.rules.Selection.Selects(object):
	case in.sourceOnly:
		return step{entry: entry}, nil
	default:
		return in.absent(workload, entry), nil
	}
	content, err := capture.Capture(object, in.rules.Ignored)
	if err != nil {
		return step{}, err
	}
	if in.preview {
		return in.previewed(workload, entry, in.observation(object, content)), nil
	}
	if in.sourceOnly && (entry == nil || !in.changed(workload, content)) {
		return step{entry: entry, hash: content.Hash}, nil
	}
	patches, known := in.patchesFor(workload)
	if !known {
		return step{entry: entry}, nil
	}
	return in.present(workload, entry, object, content, patches)
}

// present returns the step of a selected workload that is in the source.
func (in *planInput) present(
	workload reference, entry *v1alpha1.CatalogEntry, object *unstructured.Unstructured, content capture.Manifest, patches patch.Patches,
) (step, error) {
	if name := v1alpha1.CatalogWorkloadName(in.catalog.Name, workload.Kind,
		workload.Name); len(name) > utilvalidation.DNS1123SubdomainMaxLength {
		return step{}, &stallingError{v1alpha1.ReasonRecordRefused, fmt.Errorf(
			"%s %q is selected, but the name of its CatalogWorkload, %s, would be longer than %d characters; use a shorter name for the catalog",
			workload.Kind, workload.Name, name, utilvalidation.DNS1123SubdomainMaxLength)}
	}
	rendered, err := content.Patched(patches)
	if err != nil {
		return step{}, &stallingError{v1alpha1.ReasonPatchFailed, err}
	}
	out := step{hash: content.Hash, entry: &v1alpha1.CatalogEntry{Kind: workload.Kind, Name: workload.Name, Hash: rendered.Hash}}
	switch {
	case entry == nil || entry.Missing:
		out.change = v1alpha1.ChangeAdded
	case entry.Hash != rendered.Hash:
		out.change = v1alpha1.ChangeChanged
	default:
		out.entry.Revision = entry.Revision
	}
	if out.change != "" {
		out.entry.Revision = in.nextRevision()
	}
	out.workload = in.captured(workload, *out.entry, content, rendered)
	out.workload.Status.Source = in.observation(object, content)
	return out, nil
}

// absent returns the step of a workload that is not in the source, or no longer selected.
func (in *planInput) absent(workload reference, entry *v1alpha1.CatalogEntry) step {
	if in.taken != nil {
		return in.retakenAbsent(workload, entry)
	}
	held := in.held[workload]
	stays := in.sourceOnly || in.rules.Selection.Stays(workload, contentOf(held).Object)
	switch {
	case in.preview:
		if held == nil || !stays {
			return step{entry: entry}
		}
		return in.previewed(workload, entry, v1alpha1.SourceObservation{Namespace: in.catalog.Spec.SourceNamespace})
	case entry == nil:
		return step{}
	case !stays:
		return step{change: v1alpha1.ChangeRemoved}
	case entry.Missing:
		return step{entry: entry, workload: in.missing(held, *entry)}
	}
	next := *entry
	next.Missing, next.Revision = true, in.nextRevision()
	if held != nil {
		next.Hash = held.Status.Hash
	}
	return step{entry: &next, workload: in.missing(held, next), change: v1alpha1.ChangeRemoved}
}

// previewed returns the step of a workload in a preview, which only records the observed source state.
func (in *planInput) previewed(workload reference, entry *v1alpha1.CatalogEntry, observed v1alpha1.SourceObservation) step {
	out := step{entry: entry, hash: observed.Hash}
	before := ""
	if held := in.held[workload]; held != nil {
		before, out.workload = held.Status.Source.Hash, held.DeepCopy()
	} else {
		out.workload = in.newWorkload(workload)
	}
	out.workload.Status.Source = observed
	switch {
	case before == observed.Hash:
	case before == "":
		out.change = v1alpha1.ChangeAdded
	case observed.Hash == "":
		out.change = v1alpha1.ChangeRemoved
	default:
		out.change = v1alpha1.ChangeChanged
	}
	return out
}

// changed reports whether the source has changed a workload since the catalog captured it.
func (in *planInput) changed(workload reference, content capture.Manifest) bool {
	held := in.held[workload]
	manifest := contentOf(held).Object
	switch {
	case held == nil, in.resumed && held.Status.Revision > in.catalog.Status.Revision:
		return true
	case manifest == nil:
		return held.Status.Source.Hash != content.Hash
	}
	again, err := capture.Capture(manifest, in.rules.Ignored)
	return err != nil || again.Hash != content.Hash
}

// nextRevision returns the revision of the changes of the plan.
func (in *planInput) nextRevision() int64 { return in.catalog.Status.Revision + 1 }

// observation returns the observed state of a workload for its CatalogWorkload.
func (in *planInput) observation(object *unstructured.Unstructured, content capture.Manifest) v1alpha1.SourceObservation {
	return v1alpha1.SourceObservation{
		Namespace: in.catalog.Spec.SourceNamespace, APIVersion: object.GetAPIVersion(),
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Hash: content.Hash,
	}
}

// seconds returns a time in the resolution in which the API stores it.
func seconds(at time.Time) *metav1.Time {
	out := metav1.NewTime(at).Rfc3339Copy()
	return &out
}
