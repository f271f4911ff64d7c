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

// situation is all that a plan depends on.
type situation struct {
	catalog *v1alpha1.AppCatalog
	rules   capture.Rules
	// held are the catalog's CatalogWorkloads.
	held map[reference]*v1alpha1.CatalogWorkload
	seen sight
	now  time.Time
	// sourceOnly says that the spec is not taken over yet. Then only what the source has changed of what the catalog holds
	// counts.
	sourceOnly bool
	// editPending says that somebody has changed the spec, and that it is taken over next.
	editPending bool
	// begun says that this is recorded already. Then CatalogWorkloads may be ahead of the status because of it.
	begun bool
	// preview says that nothing is taken over.
	preview bool
}

// plan is what a catalog becomes.
type plan struct {
	// entries are what it offers, by kind and name.
	entries []v1alpha1.CatalogEntry
	// changes are what differs from what it offers now; of a preview, from what was seen last.
	changes []v1alpha1.ResourceSummary
	// writes are the CatalogWorkloads that are new or differ.
	writes []*v1alpha1.CatalogWorkload
	// hashes are those of the content of the source, of the workloads that are there.
	hashes map[reference]string
	// preview says that nothing is taken over.
	preview bool
	// spans are what the source has made of what the changes tell of.
	spans []commits.Span
}

// step is what becomes of one workload.
type step struct {
	// entry is nil when the catalog does not offer the workload.
	entry *v1alpha1.CatalogEntry
	// record is its CatalogWorkload; nil when that stays as it is, or goes.
	record *v1alpha1.CatalogWorkload
	// change is empty when nothing counts.
	change v1alpha1.ChangeType
	// hash is that of the content of the source, where it was seen.
	hash string
}

// newPlan says what a catalog becomes in a situation. It changes nothing and asks nobody. It fails with a *problem when a
// patch does not fit, or too much is selected, and then there is no plan for any of the workloads: a revision is taken over as a whole.
func newPlan(s situation) (plan, error) {
	out := plan{hashes: map[reference]string{}, preview: s.preview}
	offered := s.offered()
	for _, workload := range s.workloads(offered) {
		next, err := s.step(workload, offered[workload])
		if err != nil {
			return plan{}, err
		}
		out.add(&s, workload, next)
	}
	if n := len(out.entries); n > v1alpha1.MaxWorkloads {
		return plan{}, &problem{v1alpha1.ReasonRecordRefused, fmt.Errorf(
			"%d workloads are selected, and a catalog holds %d at most; select fewer in spec.workloadSelector", n, v1alpha1.MaxWorkloads)}
	}
	return out, nil
}

func (p *plan) add(s *situation, workload reference, next step) {
	if next.entry != nil {
		p.entries = append(p.entries, *next.entry)
	}
	if next.record != nil && differs(s.held[workload], next.record) {
		p.writes = append(p.writes, next.record)
	}
	if next.change != "" {
		p.changes = append(p.changes, v1alpha1.ResourceSummary{
			Type: string(workload.Kind), Namespace: s.catalog.Spec.SourceNamespace, Name: workload.Name, ChangeType: next.change,
		})
		if span, ok := s.span(workload, next); ok {
			p.spans = append(p.spans, span)
		}
	}
	if next.hash != "" {
		p.hashes[workload] = next.hash
	}
}

// offered are the entries of the catalog as it is.
func (s *situation) offered() map[reference]*v1alpha1.CatalogEntry {
	out := map[reference]*v1alpha1.CatalogEntry{}
	for i := range s.catalog.Status.Workloads {
		entry := &s.catalog.Status.Workloads[i]
		out[reference{Kind: entry.Kind, Name: entry.Name}] = entry
	}
	return out
}

// workloads are all that are offered, held or seen, in order.
func (s *situation) workloads(offered map[reference]*v1alpha1.CatalogEntry) []reference {
	var out []reference
	for workload := range offered {
		out = append(out, workload)
	}
	for workload := range s.held {
		out = append(out, workload)
	}
	for workload := range s.seen.objects {
		out = append(out, workload)
	}
	slices.SortFunc(out, compareReferences)
	return slices.Compact(out)
}

func compareReferences(a, b reference) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// step says what becomes of a workload, of which the catalog has an entry or none.
func (s *situation) step(workload reference, entry *v1alpha1.CatalogEntry) (step, error) {
	if !s.seen.covers(workload) {
		return step{entry: entry}, nil
	}
	object := s.seen.objects[workload]
	switch {
	case object == nil:
		return s.absent(workload, entry), nil
	case s.rules.Selection.Selects(object):
	case s.sourceOnly:
		return step{entry: entry}, nil
	default:
		return s.absent(workload, entry), nil
	}
	content, err := capture.Capture(object, s.rules.Ignored)
	if err != nil {
		return step{}, err
	}
	if s.preview {
		return s.previewed(workload, entry, s.observation(object, content)), nil
	}
	if s.sourceOnly && (entry == nil || !s.changed(workload, content)) {
		return step{entry: entry, hash: content.Hash}, nil
	}
	patches, known := s.patchesFor(workload)
	if !known {
		return step{entry: entry}, nil
	}
	return s.present(workload, entry, object, content, patches)
}

// present is the step of a workload that is in the source and selected.
func (s *situation) present(
	workload reference, entry *v1alpha1.CatalogEntry, object *unstructured.Unstructured, content capture.Manifest, patches patch.Patches,
) (step, error) {
	if name := v1alpha1.CatalogWorkloadName(s.catalog.Name, workload.Kind, workload.Name); len(name) > utilvalidation.DNS1123SubdomainMaxLength {
		return step{}, &problem{v1alpha1.ReasonRecordRefused, fmt.Errorf(
			"%s %q is selected, and the name of its record, %s, would be longer than %d characters; a shorter name of the catalog makes room",
			workload.Kind, workload.Name, name, utilvalidation.DNS1123SubdomainMaxLength)}
	}
	rendered, err := content.Patched(patches)
	if err != nil {
		return step{}, &problem{v1alpha1.ReasonPatchFailed, err}
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
		out.entry.Revision = s.nextRevision()
	}
	out.record = s.record(workload, *out.entry, content, rendered)
	out.record.Status.Source = s.observation(object, content)
	return out, nil
}

// absent is the step of a workload that is not in the source, or not selected any more.
func (s *situation) absent(workload reference, entry *v1alpha1.CatalogEntry) step {
	held := s.held[workload]
	stays := s.sourceOnly || s.rules.Selection.Stays(workload, contentOf(held).Object)
	switch {
	case s.preview:
		if held == nil || !stays {
			return step{entry: entry}
		}
		return s.previewed(workload, entry, v1alpha1.SourceObservation{Namespace: s.catalog.Spec.SourceNamespace})
	case entry == nil:
		return step{}
	case !stays:
		return step{change: v1alpha1.ChangeRemoved}
	case entry.Missing:
		return step{entry: entry, record: s.missing(held, *entry)}
	}
	next := *entry
	next.Missing, next.Revision = true, s.nextRevision()
	if held != nil {
		next.Hash = held.Status.Hash
	}
	return step{entry: &next, record: s.missing(held, next), change: v1alpha1.ChangeRemoved}
}

// previewed is the step of a workload of a catalog that takes nothing over.
func (s *situation) previewed(workload reference, entry *v1alpha1.CatalogEntry, seen v1alpha1.SourceObservation) step {
	out := step{entry: entry, hash: seen.Hash}
	before := ""
	if held := s.held[workload]; held != nil {
		before, out.record = held.Status.Source.Hash, held.DeepCopy()
	} else {
		out.record = s.newRecord(workload)
	}
	out.record.Status.Source = seen
	switch {
	case before == seen.Hash:
	case before == "":
		out.change = v1alpha1.ChangeAdded
	case seen.Hash == "":
		out.change = v1alpha1.ChangeRemoved
	default:
		out.change = v1alpha1.ChangeChanged
	}
	return out
}

// changed says whether the source has changed a workload since the catalog took it over.
func (s *situation) changed(workload reference, content capture.Manifest) bool {
	held := s.held[workload]
	manifest := contentOf(held).Object
	switch {
	case held == nil, s.begun && held.Status.Revision > s.catalog.Status.Revision:
		return true
	case manifest == nil:
		return held.Status.Source.Hash != content.Hash
	}
	again, err := capture.Capture(manifest, s.rules.Ignored)
	return err != nil || again.Hash != content.Hash
}

// nextRevision is that of what the plan changes.
func (s *situation) nextRevision() int64 { return s.catalog.Status.Revision + 1 }

// observation is what a CatalogWorkload says of the source.
func (s *situation) observation(object *unstructured.Unstructured, content capture.Manifest) v1alpha1.SourceObservation {
	return v1alpha1.SourceObservation{
		Namespace: s.catalog.Spec.SourceNamespace, APIVersion: object.GetAPIVersion(),
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Hash: content.Hash,
	}
}

// seconds is a time as it reads after it has been stored.
func seconds(at time.Time) *metav1.Time {
	out := metav1.NewTime(at).Rfc3339Copy()
	return &out
}
