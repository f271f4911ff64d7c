// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// theirs are the paths of files of another user, beside a destination's folder and inside it.
func (m *mirror) theirs() []string {
	return []string{"THEIRS.md", m.Folder + "/" + mirrortest.NotesPath}
}

// addTheirs pushes the files of another user.
func (m *mirror) addTheirs(t *testing.T) {
	t.Helper()
	for _, path := range m.theirs() {
		script := fmt.Sprintf(`set -e; cd %[1]s; export GIT_INDEX_FILE=$(mktemp -u)
export GIT_AUTHOR_NAME=J GIT_AUTHOR_EMAIL=j@example.com GIT_COMMITTER_NAME=J GIT_COMMITTER_EMAIL=j@example.com
tip=$(git rev-parse main); git read-tree $tip
git update-index --add --cacheinfo 100644,$(echo theirs | git hash-object -w --stdin),%[2]s
git update-ref refs/heads/main $(git commit-tree -p $tip -m theirs $(git write-tree)) $tip; rm $GIT_INDEX_FILE`, m.Repository, path)
		if out, err := shell(t.Context(), script); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// unharmed fails if a fault has changed files of others or written a change twice. Each written value must be unique.
func (m *mirror) unharmed(t *testing.T) {
	t.Helper()
	for _, path := range m.theirs() {
		if content, err := m.Git(t.Context(), "show", "main:"+path); err != nil || content != "theirs\n" {
			t.Errorf("content of %s = %q: %v", path, content, err)
		}
	}
	if empty := m.withoutChange(t); len(empty) > 0 {
		t.Errorf("commits without a change: %v", empty)
	}
	values := m.values(t)
	slices.Sort(values)
	if once := slices.Compact(slices.Clone(values)); len(once) != len(values) {
		t.Errorf("%d changes in the history, only %d are unique", len(values), len(once))
	}
	if merges, err := m.Git(t.Context(), "rev-list", "--min-parents=2", "main"); err != nil || merges != "" {
		t.Errorf("merge commits: %q, %v", merges, err)
	}
	m.Intact(t)
}
