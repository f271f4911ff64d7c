// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// MaxCommits is the maximum number of commits in a record. Each takes less than 4 KiB.
const MaxCommits = 100

// AddCommits adds commits, newest first, to a record. The record has each commit once, newest first, and only the newest MaxCommits.
func AddCommits(record *v1alpha1.SyncStatus, commits []v1alpha1.MirroredCommit) {
	named := map[commitKey]bool{}
	var all []v1alpha1.MirroredCommit
	for _, commit := range slices.Concat(commits, record.Status.Commits) {
		if key := (commitKey{commit.DestinationRef, commit.SHA}); !named[key] {
			named[key] = true
			all = append(all, commit)
		}
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.MirroredCommit) int { return b.Time.Compare(a.Time.Time) })
	record.Status.Commits = slices.Clip(all[:min(len(all), MaxCommits)])
}

// commitKey identifies a commit. The commits of two destinations are different, even on the same branch.
type commitKey struct {
	destination v1alpha1.NamespacedObjectReference
	sha         string
}
