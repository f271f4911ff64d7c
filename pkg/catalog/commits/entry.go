// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commits

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Entry states that a commit contains versions of an object.
type Entry struct {
	Commit v1alpha1.MirroredCommit
	// First and Last are the resourceVersions of the first and the last change of the object in the commit. First is empty if the
	// commit comes from a comparison of the object, at version Last, with the branch.
	First, Last string
	// Created is true if the commit adds the object's file, Removed if it deletes it.
	Created, Removed bool
}

// EntriesOf returns the entries of the Changes of an object. A Change without a version has none.
func EntriesOf(changes []v1alpha1.Change) []Entry {
	var entries []Entry
	for _, change := range changes {
		versions := change.Spec.ResourceVersions
		if versions.Last == "" {
			continue
		}
		for _, commit := range change.Spec.Commits {
			entries = append(entries, Entry{
				Commit: v1alpha1.MirroredCommit{
					CommitSummary:  v1alpha1.CommitSummary{SHA: commit.SHA, Time: commit.Time, Message: commit.Message, URL: commit.URL},
					DestinationRef: commit.DestinationRef,
				},
				First: versions.First, Last: versions.Last, Created: commit.BlobBefore == "", Removed: commit.BlobAfter == "",
			})
		}
	}
	return entries
}

// destination returns the GitDestination of the commit.
func (e Entry) destination() types.NamespacedName {
	return types.NamespacedName{Namespace: e.Commit.DestinationRef.Namespace, Name: e.Commit.DestinationRef.Name}
}

// Compare orders entries by the last change that they contain, and entries of the same change by their commits.
func (e Entry) Compare(other Entry) int {
	return cmp.Or(compare(e.Last, other.Last), e.Commit.Time.Compare(other.Commit.Time.Time),
		strings.Compare(e.destination().String(), other.destination().String()), strings.Compare(e.Commit.SHA, other.Commit.SHA))
}

// compare orders resourceVersions. It returns 0 for those that cannot be compared.
func compare(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}
