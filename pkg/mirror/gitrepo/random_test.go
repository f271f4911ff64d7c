// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// noise returns text that compresses poorly.
func noise(size int) string {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(' ' + rand.IntN(90))
	}
	return string(data)
}

// TestRandomChangesMatchWorkTree applies the same random changes to a branch and to a work tree of git, and compares the
// trees after every commit.
func TestRandomChangesMatchWorkTree(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRepository(t)
	w := r.clone()
	remote := newRemote(t, r.serve(plain))
	branch := load(t, remote, gitrepo.Options{MaxPackBytes: 2 << 10})
	for round := range 60 {
		var changes []gitrepo.Change
		for range 1 + random.IntN(8) {
			change := randomChange(random)
			w.apply(change)
			changes = append(changes, change)
		}
		if _, _, err := branch.Stage(commitOf("round "+strconv.Itoa(round), changes...)); err != nil {
			t.Fatal(err)
		}
		w.git("add", "--all")
		want := strings.TrimSpace(w.git("write-tree"))
		if got, _ := branch.Snapshot().FolderHash(""); got.String() != want && branch.Snapshot().Len("") > 0 {
			t.Fatalf("round %d: tree %s, git has %s; changes %q", round, got, want, changes)
		}
		switch random.IntN(4) {
		case 0:
			push(t, branch)
		case 1:
			push(t, branch)
			branch = load(t, remote, gitrepo.Options{MaxPackBytes: 2 << 10})
		}
	}
	push(t, branch)
	r.fsck()
}

// randomChange uses few names, so that files and directories often conflict.
func randomChange(random *rand.Rand) gitrepo.Change {
	var path []string
	for range 1 + random.IntN(3) {
		path = append(path, []string{"a", "a.b", "a-b", "a0", "b", "c"}[random.IntN(6)])
	}
	if random.IntN(4) == 0 {
		return remove(strings.Join(path, "/"))
	}
	return set(strings.Join(path, "/"), strconv.Itoa(random.IntN(5)))
}

// apply applies the change to the files of the work tree.
func (w writer) apply(change gitrepo.Change) {
	w.t.Helper()
	full := filepath.Join(w.path, change.Path)
	if change.Content == nil {
		if info, err := os.Lstat(full); err == nil && !info.IsDir() {
			_ = os.Remove(full)
		}
		return
	}
	for parent := filepath.Dir(full); parent != w.path; parent = filepath.Dir(parent) {
		if info, err := os.Lstat(parent); err == nil && !info.IsDir() {
			_ = os.Remove(parent)
		}
	}
	if info, err := os.Lstat(full); err == nil && info.IsDir() {
		_ = os.RemoveAll(full)
	}
	w.write(change.Path, string(change.Content))
}
