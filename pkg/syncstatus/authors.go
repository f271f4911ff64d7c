// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"cmp"
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// AddAuthors adds authors to a record, in the order of CompareAuthors. An author that is added again keeps the greater number of
// workloads, because the workloads may be the same.
func AddAuthors(record *v1alpha1.SyncStatus, authors []v1alpha1.SourceAuthor) {
	named := map[v1alpha1.SourceAuthor]int32{}
	for _, author := range slices.Concat(record.Status.ChangedBy, authors) {
		workloads := author.Workloads
		author.Workloads = 0
		named[author] = max(named[author], workloads)
	}
	record.Status.ChangedBy = nil
	for author, workloads := range named {
		author.Workloads = workloads
		record.Status.ChangedBy = append(record.Status.ChangedBy, author)
	}
	slices.SortFunc(record.Status.ChangedBy, CompareAuthors)
}

// CompareAuthors orders authors by the number of workloads that they changed, greatest first.
func CompareAuthors(a, b v1alpha1.SourceAuthor) int {
	return cmp.Or(cmp.Compare(b.Workloads, a.Workloads), cmp.Compare(a.Username, b.Username),
		cmp.Compare(a.ImpersonatedBy, b.ImpersonatedBy), cmp.Compare(a.FieldManager, b.FieldManager), cmp.Compare(a.Signal, b.Signal),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Email, b.Email))
}
