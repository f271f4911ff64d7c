// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/catalog/commits"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// span is what the source has made of a workload that is told of; false, when it is the catalog that has changed.
func (s *situation) span(workload reference, next step) (commits.Span, bool) {
	out := commits.Span{Object: commitindex.Object{
		GroupResource: v1alpha1.WorkloadResources()[workload.Kind], Namespace: s.catalog.Spec.SourceNamespace, Name: workload.Name,
	}}
	held, object := s.held[workload], s.seen.objects[workload]
	if held != nil {
		out.After = held.Status.Source.ResourceVersion
	}
	if object == nil {
		return out, true
	}
	out.To = object.GetResourceVersion()
	hash := next.hash
	if content, err := capture.Capture(object, s.rules.Ignored); hash == "" && err == nil {
		hash = content.Hash
	}
	return out, held == nil || held.Status.Source.Hash != hash
}

// begin lets spans begin with the first event of a batch. What a watch has missed may have been before.
func (o occasion) begin(spans []commits.Span) []commits.Span {
	if o.resync {
		return spans
	}
	out := slices.Clone(spans)
	for i := range out {
		same := func(change pending.Change) bool {
			resource := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(change.Kind)]
			return change.Name == out[i].Object.Name && resource == out[i].Object.GroupResource
		}
		if at := slices.IndexFunc(o.changes, same); at >= 0 {
			out[i].From = o.changes[at].FirstResourceVersion
		}
	}
	return out
}
