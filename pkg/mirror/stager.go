// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// stager stages the commits of changes on a branch.
type stager struct {
	remote  *remoteBranch
	markers *markers
	// history is nil if Changes are not recorded.
	history History
	memory  memory
}

// stageRows stages commits of rows that are not superseded, up to a number of commits. The other rows stay for the next
// push.
func (s *stager) stageRows(b *batch, rows []outbox.Row, commits int) error {
	d := b.member.destination
	var changes []outbox.Change
	var place []int // index of each change in rows
	for i, row := range rows {
		if !d.superseded(row) && !d.outdated(row.Change) {
			changes, place = append(changes, row.Change), append(place, i)
		}
	}
	staged := 0
	for _, g := range groupChanges(b.member.plan.object.Spec.Granularity, changes) {
		if b.pushed.commits >= commits {
			b.rows = rows[:place[staged]]
			return nil
		}
		if err := s.stage(b.member, g, false, &b.pushed); err != nil {
			return err
		}
		staged += len(g.changes)
	}
	b.rows = rows
	return nil
}

// stage stages a commit of those changes that change a file.
func (s *stager) stage(m member, g group, seed bool, sum *pushed) error {
	p := m.plan
	changes := effectiveChanges(s.remote.tree(), p, g.final())
	if len(changes) == 0 {
		return nil
	}
	files := make([]gitrepo.Change, 0, len(changes))
	for _, change := range changes {
		files = append(files, gitrepo.Change{Path: p.file(change.Path), Content: change.Content})
	}
	specs := s.describe(m, g, changes, seed)
	commit := s.remote.wording.commit(m.destination.key, g.author, changes, seed, noticesOf(specs))
	hash, staged, err := s.stageFiles(m, &commit, files)
	if err != nil {
		return err
	}
	if staged {
		s.complete(specs, changes, m, hash, commit)
		sum.add(hash, subjectOf(commit), changes)
		sum.changes = append(sum.changes, specs...)
		sum.traced = append(sum.traced, tracedChanges(hash, g.changes)...)
	}
	return nil
}

// stageFiles stages a commit of files, with the marker if the folder needs one.
func (s *stager) stageFiles(m member, commit *gitrepo.Commit, files []gitrepo.Change) (hash gitrepo.Hash, staged bool, err error) {
	marker, needed, err := s.markers.markerFor(s.remote.tree(), m)
	if err != nil {
		return hash, false, err
	}
	if needed {
		files = append(files, marker)
	}
	commit.Changes, commit.Sign = files, s.remote.sign
	if hash, staged, err = s.remote.branch.Stage(*commit); err != nil {
		return hash, false, &rejectedError{fmt.Errorf("make a commit: %w", err), []member{m}}
	}
	return hash, staged, nil
}

// effectiveChanges returns the changes that change a file of the branch, with their operation set to create or update.
func effectiveChanges(tree *gitrepo.Tree, p *destinationPlan, changes []outbox.Change) []outbox.Change {
	var effective []outbox.Change
	for _, change := range changes {
		hash, exists := tree.Lookup(p.file(change.Path))
		switch {
		case change.Operation == v1alpha1.OperationDelete:
			if !exists {
				continue
			}
		case exists && hash == gitrepo.BlobHash(change.Content):
			continue
		case exists:
			change.Operation = v1alpha1.OperationUpdate
		default:
			change.Operation = v1alpha1.OperationCreate
		}
		effective = append(effective, change)
	}
	return effective
}
