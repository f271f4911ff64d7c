// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// everyTransport calls test with a repository at the URL of each transport.
func everyTransport(t *testing.T, test func(t *testing.T, r repository, remote *gitrepo.Remote)) {
	t.Helper()
	transports(t, func(t *testing.T, r repository, url string) { test(t, r, newRemote(t, url)) })
	t.Run("ssh", func(t *testing.T) {
		r := newRepository(t)
		key, public := clientKey(t, "")
		server := newSSHServer(t, public)
		remote := newRemote(t, server.url(r.path))
		remote.Credentials = gitrepo.Credentials{SSHPrivateKey: key, KnownHosts: server.knownHosts()}
		test(t, r, remote)
	})
}

// rivals has another writer call act before each of our pushes that arrives, up to a number of times: a hook of the server does it, which
// runs between the advertisement and the update.
func (r repository) rivals(times int, act string) {
	r.t.Helper()
	r.hook("pre-receive", fmt.Sprintf(`read old new name
count=$(cat rivals 2>/dev/null || echo 0)
[ $count -lt %d ] || exit 0
echo $((count+1)) > rivals
unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
export GIT_AUTHOR_NAME=them GIT_AUTHOR_EMAIL=them@example.com GIT_COMMITTER_NAME=them GIT_COMMITTER_EMAIL=them@example.com
export GIT_INDEX_FILE=$PWD/rival
tip=$(git rev-parse refs/heads/main)
add() { git read-tree $tip && git update-index --add --cacheinfo 100644,$(echo $count | git hash-object -w --stdin),$1 &&
  git update-ref refs/heads/main $(git commit-tree -m theirs $2 $(git write-tree)); }
%s
`, times, act))
}

const (
	theirFile    = `add theirs/file "-p $tip"`
	managedFile  = `add ours/file "-p $tip"`
	rewritten    = `add theirs/file ""`
	deleteBranch = `git update-ref -d refs/heads/main`
)

// TestPushFollowing has another writer act between our advertisement and our update.
func TestPushFollowing(t *testing.T) {
	for _, test := range []struct {
		name  string
		times int
		act   string
		// moved is how often the caller is called, and failed is set if it must refresh the branch.
		moved  int
		failed bool
	}{
		{name: "no other writer"},
		{name: "one commit", times: 1, act: theirFile, moved: 1},
		{name: "several times", times: 5, act: theirFile, moved: 5},
		{name: "all the time", times: 1000, act: theirFile, moved: 16, failed: true},
		{name: "a managed folder", times: 1, act: managedFile, failed: true},
		{name: "rewritten history", times: 1, act: rewritten, moved: 1},
		{name: "the branch is deleted", times: 1, act: deleteBranch, failed: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			everyTransport(t, func(t *testing.T, r repository, remote *gitrepo.Remote) {
				r.clone().first("ours/old", "old\n")
				branch := load(t, remote, gitrepo.Options{ManagedFolders: []string{"ours"}})
				for i := range 2 { // The second one begins without an advertisement over HTTP.
					stage(t, branch, set("ours/before", fmt.Sprint(i)))
					push(t, branch)
				}
				r.rivals(test.times, test.act)
				moved := followed(t, r, branch, test.failed)
				if moved != test.moved {
					t.Errorf("%d new tips, want %d", moved, test.moved)
				}
			})
		})
	}
}

// followed pushes two commits and returns how often others were faster.
func followed(t *testing.T, r repository, branch *gitrepo.Branch, fails bool) (moved int) {
	t.Helper()
	names := []gitrepo.Hash{
		stage(t, branch, set("ours/a", "1\n"), set("ours/b/c", "2\n")), stage(t, branch, set("ours/a", "3\n"), remove("ours/old")),
	}
	accepted, err := branch.PushFollowing(t.Context(), func(_ context.Context, renamed map[gitrepo.Hash]gitrepo.Hash) error {
		moved++
		if tip := strings.TrimSpace(r.git("rev-parse", "main")); branch.Tip().String() != tip {
			t.Errorf("Tip is %s, the branch at %s", branch.Tip(), tip)
		}
		for i, name := range names {
			names[i] = renamed[name]
		}
		return nil
	})
	if fails {
		if !errors.Is(err, gitrepo.ErrMoved) || len(accepted) != 0 {
			t.Fatalf("accepted %v, error %v; want ErrMoved", accepted, err)
		}
		r.equals(branch)
		return moved
	}
	if err != nil || fmt.Sprint(accepted) != fmt.Sprint(names) {
		t.Fatalf("accepted %v, error %v; want %v", accepted, err, names)
	}
	if got := strings.Fields(r.git("rev-list", "--reverse", "-2", "main")); got[0] != names[0].String() || got[1] != names[1].String() {
		t.Errorf("the branch ends in %v, want %v", got, names)
	}
	if got := r.git("show", "main:ours/a") + r.git("show", "main:ours/b/c") + r.git("show", "main~:ours/a"); got != "3\n2\n1\n" {
		t.Errorf("contents: %q", got)
	}
	r.equals(branch)
	r.fsck()
	return moved
}

// TestPushFollowingIsNotSent checks that no commit is sent on a new tip if the caller does not agree.
func TestPushFollowingIsNotSent(t *testing.T) {
	everyTransport(t, func(t *testing.T, r repository, remote *gitrepo.Remote) {
		r.clone().first("ours/old", "old\n")
		branch := load(t, remote, gitrepo.Options{ManagedFolders: []string{"ours"}})
		r.rivals(1, theirFile)
		stage(t, branch, set("ours/a", "1\n"))
		refused := errors.New("disk full")
		_, err := branch.PushFollowing(t.Context(), func(context.Context, map[gitrepo.Hash]gitrepo.Hash) error { return refused })
		if !errors.Is(err, refused) {
			t.Errorf("error %v, want %v", err, refused)
		}
		if got := strings.TrimSpace(r.git("log", "-1", "--format=%s", "main")); got != "theirs" {
			t.Errorf("the last commit is %q", got)
		}
		r.equals(branch)
	})
}

// equals fails unless a branch with the managed folder "ours", refreshed, is that of the repository.
func (r repository) equals(branch *gitrepo.Branch) {
	r.t.Helper()
	if err := branch.Refresh(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	tip, want := strings.TrimSpace(r.git("for-each-ref", "--format=%(objectname)", "refs/heads/main")), ""
	if tip != "" {
		want = r.git("ls-tree", "-r", "--format=%(objectname) %(path)", "main", "ours/")
	}
	got := ""
	_ = branch.Snapshot().Walk("ours", func(path string, hash gitrepo.Hash) error {
		got += fmt.Sprintln(hash, path)
		return nil
	})
	if got != want || strings.Trim(branch.Tip().String(), "0") != tip && branch.Tip().String() != tip {
		r.t.Errorf("tip %s, files %q; want tip %s, files %q", branch.Tip(), got, tip, want)
	}
}
