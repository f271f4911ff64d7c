// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// auditPendingError is returned if reports of the authors of changes are expected that a comparison has found. Nothing was written.
type auditPendingError struct{ wait time.Duration }

func (e *auditPendingError) Error() string { return "waiting for the authors of changes" }

// attributeFound adds to the trigger the changes of a plan that were found by the comparison and not by an event with an author, if their authors are
// known. It adds none for an edit, whose changes are attributed to the editor. It returns an auditPendingError if the authors may be known
// later: no event may follow, because a watch that starts lists what was changed a moment before.
func (u *updater) attributeFound(t *task, next plan, source sourceState) error {
	if syncstatus.IsEdit(t.trigger.batch) {
		return nil
	}
	found := slices.Clone(t.trigger.changes)
	var wait time.Duration
	for _, change := range next.changes {
		workload := reference{Kind: v1alpha1.WorkloadKind(change.Type), Name: change.Name}
		if slices.ContainsFunc(t.trigger.changes, func(c pending.Change) bool { return len(c.Authors) > 0 && referenceOf(c.Object) == workload }) {
			continue
		}
		event := t.equivalentEvent(workload, source)
		wait = max(wait, u.authors.AuditWait(event))
		if author := u.authors.FindSince(event, capturedAt(t.held[workload])); author.Known() {
			found = append(found, pending.Change{
				Object:  pending.Object{GroupKind: schema.GroupKind{Kind: change.Type}, Namespace: change.Namespace, Name: change.Name},
				Authors: []pending.Contribution{{Author: author}},
			})
		}
	}
	if wait = min(wait, u.auditWait()-u.clock.Since(t.trigger.detected)); wait > 0 && t.trigger.resync {
		return &auditPendingError{wait}
	}
	t.trigger.changes = found
	return nil
}

// equivalentEvent returns the event that would have reported the observed state of a workload.
func (t *task) equivalentEvent(workload reference, source sourceState) attribution.Event {
	out := attribution.Event{
		Operation: v1alpha1.OperationUpdate, Object: source.objects[workload],
		Resource: v1alpha1.WorkloadResources()[workload.Kind].WithVersion(""),
	}
	if out.Object != nil {
		return out
	}
	out.Operation, out.Object = v1alpha1.OperationDelete, &unstructured.Unstructured{Object: map[string]any{}}
	out.Object.SetNamespace(t.catalog.Spec.SourceNamespace)
	out.Object.SetName(workload.Name)
	if held := t.held[workload]; held != nil {
		out.Object.SetUID(held.Status.Source.UID)
	}
	return out
}

// capturedAt returns when the source was last known to have the content of a CatalogWorkload, the zero value if it never was.
func capturedAt(held *v1alpha1.CatalogWorkload) time.Time {
	if held == nil || held.Status.CapturedAt == nil {
		return time.Time{}
	}
	return held.Status.CapturedAt.Time
}
