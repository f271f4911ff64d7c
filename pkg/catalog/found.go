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

// found are the changes that a plan tells of and no event has: those of a comparison whose authors the audit knows. What an
// edit takes over is the work of its editor.
func (k *keeper) found(t *task, next plan, seen sight) []pending.Change {
	if syncstatus.IsEdit(t.batch) {
		return nil
	}
	var out []pending.Change
	for _, change := range next.changes {
		workload := reference{Kind: v1alpha1.WorkloadKind(change.Type), Name: change.Name}
		if slices.ContainsFunc(t.changes, func(told pending.Change) bool { return referenceOf(told.Object) == workload }) {
			continue
		}
		author := k.author(t.comparison(workload, seen), capturedAt(t.held[workload]))
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

// comparison is what has been seen of a workload, as if an event had told of it.
func (t *task) comparison(workload reference, seen sight) attribution.Event {
	out := attribution.Event{
		Operation: v1alpha1.OperationUpdate, Object: seen.objects[workload],
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

// capturedAt is when the source was last known to have what a CatalogWorkload holds; the zero value when it never was.
func capturedAt(held *v1alpha1.CatalogWorkload) time.Time {
	if held == nil || held.Status.CapturedAt == nil {
		return time.Time{}
	}
	return held.Status.CapturedAt.Time
}
