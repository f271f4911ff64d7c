// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/catalog/commits"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// span returns the versions between which the source has changed a workload. ok is false if only the catalog has changed.
func (in *planInput) span(workload reference, next step) (out commits.Span, ok bool) {
	out = commits.Span{Object: history.Object{
		GroupResource: v1alpha1.WorkloadResources()[workload.Kind], Namespace: in.catalog.Spec.SourceNamespace, Name: workload.Name,
	}}
	held, object := in.held[workload], in.source.objects[workload]
	if held != nil {
		out.After = held.Status.Source.ResourceVersion
	}
	if object == nil {
		return out, held == nil || !held.Status.Missing
	}
	out.To = object.GetResourceVersion()
	hash := next.hash
	if content, err := capture.Capture(object, in.rules.Ignored); hash == "" && err == nil {
		hash = content.Hash
	}
	return out, held == nil || held.Status.Source.Hash != hash
}

// startSpans sets the start of spans to the first event of the batch. It does not if events may be missing, because a missing event may
// be earlier.
func (t trigger) startSpans(spans []commits.Span) []commits.Span {
	if t.resync {
		return spans
	}
	out := slices.Clone(spans)
	for i := range out {
		same := func(change pending.Change) bool {
			resource := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(change.Kind)]
			return change.Name == out[i].Object.Name && resource == out[i].Object.GroupResource
		}
		if at := slices.IndexFunc(t.changes, same); at >= 0 {
			out[i].From = t.changes[at].FirstResourceVersion
		}
	}
	return out
}
