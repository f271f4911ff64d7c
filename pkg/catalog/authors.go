// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/catalog/intake"
	"github.com/configbutler/slipstream/pkg/syncrecord"
)

// changedBy are those who made changes of the workloads that are recorded, who changed most of them first.
func changedBy(changes []intake.Change, recorded []v1alpha1.ResourceSummary) []v1alpha1.SourceAuthor {
	wanted := sets.New[reference]()
	for _, change := range recorded {
		wanted.Insert(reference{Kind: v1alpha1.WorkloadKind(change.Type), Name: change.Name})
	}
	workloads := map[v1alpha1.SourceAuthor]sets.Set[reference]{}
	for _, change := range changes {
		workload := referenceOf(change.Object)
		if !wanted.Has(workload) {
			continue
		}
		for _, contribution := range change.Authors {
			author := sourceAuthor(contribution.Author)
			if workloads[author] == nil {
				workloads[author] = sets.New[reference]()
			}
			workloads[author].Insert(workload)
		}
	}
	var out []v1alpha1.SourceAuthor
	for author, of := range workloads {
		author.Workloads = int32(of.Len())
		out = append(out, author)
	}
	slices.SortFunc(out, syncrecord.CompareAuthors)
	return out
}

// referenceOf is what a catalog calls a changed object.
func referenceOf(object intake.Object) reference {
	return reference{Kind: v1alpha1.WorkloadKind(object.Kind), Name: object.Name}
}

// sourceAuthor is an author as records name one.
func sourceAuthor(author attribution.Author) v1alpha1.SourceAuthor {
	out := v1alpha1.SourceAuthor{Signal: v1alpha1.SignalUnknown}
	switch author.Signal {
	case attribution.ManagedFields:
		out.Signal, out.FieldManager = v1alpha1.SignalManagedFields, author.Manager
		return out
	case attribution.Audit:
		out.Signal = v1alpha1.SignalAudit
	case attribution.Admission:
		out.Signal = v1alpha1.SignalAdmission
	default:
		return out
	}
	out.Username, out.Name, out.Email, out.ImpersonatedBy = author.Username, author.Name, author.Email, author.ImpersonatedBy
	return out
}
