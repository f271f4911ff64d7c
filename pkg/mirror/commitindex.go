// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"slices"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
)

// CommitIndex is the commit index as the mirror writes it.
type CommitIndex interface {
	// Load reads the scope that an earlier process has stored.
	Load(ctx context.Context) error
	// InScope reports whether entries of an object are stored.
	InScope(object commitindex.Object) bool
	// Prepare stores the entries of a push before it is sent.
	Prepare(ctx context.Context, tip string, entries []commitindex.Entry) error
	// Record adds the entries of a push that the remote has accepted. It is called at least once for each.
	Record(ctx context.Context, tip string) error
	// Discard deletes the entries of a push that the remote has rejected.
	Discard(ctx context.Context, tip string) error
}

var _ CommitIndex = &commitindex.Index{}

// resumeCommitIndex takes over the state of an earlier process.
func (s *branchServices) resumeCommitIndex(ctx context.Context) error {
	if s.commitIndex == nil {
		return nil
	}
	return s.commitIndex.Load(ctx)
}

// entries returns the index entries of a commit, for the objects in the scope of the index. changes are the changes of the group g that
// have an effect. A sweep has no entries, because it knows no change of an object.
func (s *stager) entries(
	m member, hash gitrepo.Hash, commit gitrepo.Commit, g group, changes []outbox.Change, seed bool,
) []commitindex.Entry {
	if s.index == nil {
		return nil
	}
	var entries []commitindex.Entry
	for _, change := range changes {
		object := commitindex.Object{
			GroupResource: change.Object.GroupVersionResource().GroupResource(), Namespace: change.Object.Namespace, Name: change.Object.Name,
		}
		if change.ResourceVersion == "" || !s.index.InScope(object) {
			continue
		}
		next := commitindex.Entry{
			Object: object, Last: change.ResourceVersion,
			Commit: commitindex.Commit{
				Destination: m.destination.key, SHA: hash.String(), Time: commit.Committer.When.Truncate(time.Second),
				Message: subjectOf(commit), URL: commitURL(m.plan, hash),
			},
			Created: change.Operation == v1alpha1.OperationCreate, Removed: change.Operation == v1alpha1.OperationDelete,
		}
		if !seed {
			first := slices.IndexFunc(g.changes, func(other outbox.Change) bool { return other.Path == change.Path })
			next.First = g.changes[first].ResourceVersion
		}
		entries = append(entries, next)
	}
	return entries
}
