// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// transports runs a test with a remote over HTTP and with a local one.
func transports(t *testing.T, test func(t *testing.T, r repository, url string)) {
	t.Helper()
	t.Run("http", func(t *testing.T) {
		r := newRepository(t)
		test(t, r, r.serve(plain))
	})
	t.Run("file", func(t *testing.T) {
		r := newRepository(t)
		test(t, r, "file://"+r.path)
	})
}

func TestFirstPushToEmptyRepository(t *testing.T) {
	transports(t, func(t *testing.T, r repository, url string) {
		remote := newRemote(t, url)
		if err := remote.Check(t.Context()); err != nil {
			t.Fatalf("Check: %v", err)
		}
		branch := load(t, remote, gitrepo.Options{})
		if !branch.Tip().IsZero() || branch.Snapshot().Len("") != 0 {
			t.Fatalf("tip %s and %d files in an empty repository", branch.Tip(), branch.Snapshot().Len(""))
		}
		commit := stage(t, branch, set("base/a.yaml", "a\n"), set("base/b/c.yaml", "c\n"))
		if accepted := push(t, branch); len(accepted) != 1 || accepted[0] != commit || branch.Tip() != commit {
			t.Errorf("accepted %v, tip %s, want %s", accepted, branch.Tip(), commit)
		}
		if got := r.git("show", "main:base/b/c.yaml"); got != "c\n" {
			t.Errorf("content = %q", got)
		}
		if got := strings.TrimSpace(r.git("rev-list", "--count", "main")); got != "1" {
			t.Errorf("%s commits, want one root commit", got)
		}
		r.fsck()
	})
}

func TestMissingBranchBesideOthers(t *testing.T) {
	r := newRepository(t)
	r.clone().first("README", "hello\n")
	branch, err := gitrepo.Load(t.Context(), newRemote(t, r.serve(plain)), "mirror/one", gitrepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stage(t, branch, set("x.yaml", "x\n"))
	push(t, branch)
	if got := r.git("ls-tree", "-r", "--name-only", "mirror/one"); got != "x.yaml\n" {
		t.Errorf("files of the new branch = %q", got)
	}
}

func (w writer) first(path, content string) {
	w.t.Helper()
	w.write(path, content)
	w.push("first")
}

func TestStageWithoutChanges(t *testing.T) {
	r := newRepository(t)
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{})
	stage(t, branch, set("a/b.yaml", "b\n"))
	push(t, branch)
	for name, changes := range map[string][]gitrepo.Change{
		"no change":         nil,
		"same content":      {set("a/b.yaml", "b\n")},
		"deleted unknown":   {remove("a/c.yaml"), remove("c/d"), remove("a/b.yaml/x"), remove("a")},
		"last change wins":  {set("a/b.yaml", "other\n"), set("a/b.yaml", "b\n")},
		"set and removed":   {set("n/x.yaml", "x"), remove("n/x.yaml")},
		"deleted and reset": {remove("a/b.yaml"), set("a/b.yaml", "b\n")},
	} {
		if hash, committed, err := branch.Stage(commitOf("no-op", changes...)); committed || err != nil || !hash.IsZero() {
			t.Errorf("%s: commit %s, committed %v, error %v", name, hash, committed, err)
		}
	}
	if accepted := push(t, branch); len(accepted) != 0 {
		t.Errorf("pushed %v", accepted)
	}
}

func TestStageWithoutChangesInEmptyRepository(t *testing.T) {
	r := newRepository(t)
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{})
	if _, committed, err := branch.Stage(commitOf("no-op", set("a/b", "x"), remove("a/b"))); committed || err != nil {
		t.Errorf("committed %v, error %v", committed, err)
	}
}

func TestUnmanagedFilesArePreserved(t *testing.T) {
	transports(t, func(t *testing.T, r repository, url string) {
		w := r.clone()
		w.write("README.md", "theirs\n")
		w.write("base/run.sh", "#!/bin/sh\n")
		w.write("base/plain.yaml", "plain\n")
		w.write("other/deep/file", "deep\n")
		if err := os.Chmod(filepath.Join(w.path, "base/run.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../README.md", filepath.Join(w.path, "base/link")); err != nil {
			t.Fatal(err)
		}
		w.git("add", "--all")
		w.git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",base/module")
		w.git("commit", "--quiet", "--message", "theirs")
		w.git("push", "--quiet", "origin", "HEAD:main")
		before := r.files("main")

		branch := load(t, newRemote(t, url), gitrepo.Options{ManagedFolders: []string{"/base/"}})
		stage(t, branch, set("base/new.yaml", "new\n"), set("base/run.sh", "#!/bin/bash\n"), remove("base/module"))
		push(t, branch)

		want := maps.Clone(before)
		want["base/new.yaml"] = "100644 " + gitrepo.BlobHash([]byte("new\n")).String()
		want["base/run.sh"] = "100755 " + gitrepo.BlobHash([]byte("#!/bin/bash\n")).String()
		if diff := cmp.Diff(want, r.files("main")); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		var seen []string
		_ = branch.Snapshot().Walk("", func(path string, _ gitrepo.Hash) error {
			seen = append(seen, path)
			return nil
		})
		if diff := cmp.Diff([]string{"README.md", "base/new.yaml", "base/plain.yaml", "base/run.sh"}, seen); diff != "" {
			t.Errorf("walk (-want +got):\n%s", diff)
		}
		if _, found := branch.Snapshot().Lookup("base/link"); found {
			t.Error("snapshot has a symbolic link as a file")
		}
		r.fsck()
	})
}

func TestManagedFolders(t *testing.T) {
	r := newRepository(t)
	w := r.clone()
	w.write("one/a.yaml", "a\n")
	w.write("one/two/b.yaml", "b\n")
	w.write("three/c.yaml", "c\n")
	w.push("first")
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{ManagedFolders: []string{"one/two", "new/folder"}})
	for path, want := range map[string]bool{
		"one/two/x.yaml": true, "new/folder/x.yaml": true, "one/x.yaml": false, "three/c.yaml": false, "x.yaml": false,
		"one/two": false, "new/folders/x": false,
	} {
		_, committed, err := branch.Stage(commitOf("x", set(path, "x")))
		if committed != want || errors.Is(err, gitrepo.ErrPath) == want {
			t.Errorf("%s: committed %v, error %v", path, committed, err)
		}
	}
	push(t, branch)
	want := []string{"new/folder/x.yaml", "one/a.yaml", "one/two/b.yaml", "one/two/x.yaml", "three/c.yaml"}
	if diff := cmp.Diff(strings.Join(want, "\n")+"\n", r.git("ls-tree", "-r", "--name-only", "main")); diff != "" {
		t.Error(diff)
	}
	r.fsck()
}

func TestInvalidPaths(t *testing.T) {
	r := newRepository(t)
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{})
	for _, path := range []string{
		"", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", ".git/config", "a/.GIT/b", "a/.git", "git~1/x", ".git./x", ".git /x",
		".git::$INDEX_ALLOCATION/x", "a\x00b", `a\b`, ".g\u200cit/x", ".gitmodules/x",
		"a/.GitAttributes/x", "GITMOD~1/x", "gi7eba~1", "a/.gitignore", ".mailmap",
	} {
		if _, committed, err := branch.Stage(commitOf("x", set(path, "x"))); committed || !errors.Is(err, gitrepo.ErrPath) {
			t.Errorf("%q: committed %v, error %v", path, committed, err)
		}
	}
	if _, err := gitrepo.Load(t.Context(), newRemote(t, r.path), "main",
		gitrepo.Options{ManagedFolders: []string{"../x"}}); !errors.Is(err, gitrepo.ErrPath) {
		t.Errorf("invalid managed folder: %v", err)
	}
	for _, name := range []string{"", "a..b", "a b", "-", "a.lock", "/a"} {
		var failure *gitrepo.Error
		_, err := gitrepo.Load(t.Context(), newRemote(t, r.path), name, gitrepo.Options{})
		if !errors.As(err, &failure) || failure.Kind != gitrepo.Invalid {
			t.Errorf("branch %q: %v", name, err)
		}
	}
}

func TestFileDirectoryConflicts(t *testing.T) {
	transports(t, func(t *testing.T, r repository, url string) {
		branch := load(t, newRemote(t, url), gitrepo.Options{})
		stage(t, branch, set("a", "file\n"), set("d/x/y", "y\n"), set("d/z", "z\n"))
		stage(t, branch, set("a/b", "in a directory\n"))
		stage(t, branch, set("d/x", "a file now\n"))
		stage(t, branch, remove("d/x"), remove("d/z"))
		push(t, branch)
		if got := r.git("ls-tree", "-r", "--name-only", "main"); got != "a/b\n" {
			t.Errorf("files: %q", got)
		}
		stage(t, branch, remove("a/b"))
		push(t, branch)
		if got := r.git("ls-tree", "main"); got != "" {
			t.Errorf("tree after the last file was removed = %q", got)
		}
		r.fsck()
	})
}

func TestPushSplitsBySize(t *testing.T) {
	r := newRepository(t)
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{MaxPackBytes: 4 << 10})
	var staged []gitrepo.Hash
	for i := range 20 {
		staged = append(staged, stage(t, branch, set(fmt.Sprintf("f/%02d.yaml", i), noise(1<<10))))
	}
	large := stage(t, branch, set("large", noise(64<<10)))
	accepted := push(t, branch)
	if diff := cmp.Diff(append(staged, large), accepted); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	r.fsck()
	if pushes := strings.Count(r.git("reflog", "show", "main"), "\n"); pushes > 1 {
		t.Logf("%d pushes", pushes)
	}
}

func TestSplitPushRollsBackToAcceptedCommits(t *testing.T) {
	r := newRepository(t)
	r.hook("pre-receive", "read old new ref\n"+
		"git ls-tree -r --name-only $new | grep -q f3 && { echo 'f3 is not allowed' >&2; exit 1; }\nexit 0\n")
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{MaxPackBytes: 1})
	var staged []gitrepo.Hash
	for i := range 5 {
		staged = append(staged, stage(t, branch, set(fmt.Sprintf("f%d", i), "x")))
	}
	accepted, err := branch.Push(t.Context())
	var failure *gitrepo.Error
	if !errors.As(err, &failure) || failure.Kind != gitrepo.Rejected || !strings.Contains(failure.Message, "f3 is not allowed") {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(staged[:3], accepted); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	if branch.Tip() != staged[2] || branch.Snapshot().Len("") != 3 {
		t.Errorf("after the rejected push: tip %s, %d files", branch.Tip(), branch.Snapshot().Len(""))
	}
	stage(t, branch, set("f5", "x"))
	push(t, branch)
	r.fsck()
}

func TestManyCommitsInFlatFolder(t *testing.T) {
	for _, pushEach := range []bool{false, true} {
		t.Run(fmt.Sprintf("pushEach=%v", pushEach), func(t *testing.T) {
			transports(t, func(t *testing.T, r repository, url string) {
				branch := load(t, newRemote(t, url), gitrepo.Options{})
				var changes []gitrepo.Change
				for i := range 1000 {
					changes = append(changes, set(fmt.Sprintf("flat/%04d.yaml", i), "0"))
				}
				stage(t, branch, changes...)
				push(t, branch)
				commits := 100
				if pushEach {
					commits = 10
				}
				for i := range commits {
					stage(t, branch, set(fmt.Sprintf("flat/%04d.yaml", i*7), "1"), set(fmt.Sprintf("flat/%04d.x", i*5), "2"),
						remove(fmt.Sprintf("flat/%04d.yaml", i*3+1)))
					if pushEach {
						push(t, branch)
					}
				}
				push(t, branch)
				r.fsck()
				want, _ := branch.Snapshot().FolderHash("")
				if got := strings.TrimSpace(r.git("rev-parse", "main^{tree}")); got != want.String() {
					t.Errorf("tree %s, want %s", got, want)
				}
			})
		})
	}
}

func TestConcurrentSnapshotReads(t *testing.T) {
	r := newRepository(t)
	branch := load(t, newRemote(t, r.serve(plain)), gitrepo.Options{})
	var changes []gitrepo.Change
	for i := range 500 {
		changes = append(changes, set(fmt.Sprintf("d%d/%d.yaml", i%10, i), "x"))
	}
	stage(t, branch, changes...)
	var readers sync.WaitGroup
	for i := range 50 {
		snapshot := branch.Snapshot()
		want := 500 - i
		readers.Go(func() {
			for range 5 {
				if got := snapshot.Len(""); got != want {
					t.Errorf("%d files, want %d", got, want)
				}
				snapshot.Lookup("d3/3.yaml")
			}
		})
		stage(t, branch, remove(fmt.Sprintf("d%d/%d.yaml", i%10, i)), set("d3/499.x", strconv.Itoa(i)), remove("d3/499.x"))
		if i%10 == 0 {
			push(t, branch)
		}
	}
	readers.Wait()
}
