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

// attributeFound returns the changes of a plan that were found by the comparison and not by an event, if their authors are known. It
// returns none for an edit, whose changes are attributed to the editor.
func (u *updater) attributeFound(t *task, next plan, source sourceState) []pending.Change {
	if syncstatus.IsEdit(t.trigger.batch) {
		return nil
	}
	var out []pending.Change
	for _, change := range next.changes {
		workload := reference{Kind: v1alpha1.WorkloadKind(change.Type), Name: change.Name}
		if slices.ContainsFunc(t.trigger.changes, func(c pending.Change) bool { return referenceOf(c.Object) == workload }) {
			continue
		}
		author := u.author(t.equivalentEvent(workload, source), capturedAt(t.held[workload]))
		if !author.Known() {
			continue
		}
		out = append(out, pending.Change{
			Object:  pending.Object{GroupKind: schema.GroupKind{Kind: change.Type}, Namespace: change.Namespace, Name: change.Name},
			Authors: []pending.Contribution{{Author: author}},
		})
	}
	return out
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
