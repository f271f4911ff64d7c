// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// objectKey identifies an object of a namespace in records and changes.
type objectKey struct{ kind, name string }

// ChangedBy returns the authors of the changes of recorded objects, sorted by the number of objects that they changed, greatest first.
func ChangedBy(changes []Change, recorded []v1alpha1.ResourceSummary) []v1alpha1.SourceAuthor {
	wanted := sets.New[objectKey]()
	for _, change := range recorded {
		wanted.Insert(objectKey{change.Type, change.Name})
	}
	objects := map[v1alpha1.SourceAuthor]sets.Set[objectKey]{}
	for _, change := range changes {
		object := objectKey{change.Kind, change.Name}
		if !wanted.Has(object) {
			continue
		}
		for _, contribution := range change.Authors {
			author := sourceAuthor(contribution.Author)
			if objects[author] == nil {
				objects[author] = sets.New[objectKey]()
			}
			objects[author].Insert(object)
		}
	}
	var out []v1alpha1.SourceAuthor
	for author, of := range objects {
		author.Workloads = int32(of.Len())
		out = append(out, author)
	}
	slices.SortFunc(out, syncstatus.CompareAuthors)
	return out
}

// sourceAuthor converts an author to its form in records.
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
